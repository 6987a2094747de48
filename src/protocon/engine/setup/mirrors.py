"""Mirrored views are not taken for granted: the labelled images say whether mirroring changes their labels."""

from dataclasses import replace

import numpy as np
import torch
from rich.console import Console

from protocon.augment.clean import CLEAN
from protocon.core.mirror_test import MirrorEvidence, mirror_evidence
from protocon.data.files.file_report import FileReport
from protocon.data.registry import OWN
from protocon.engine.setup.encode import build_frozen, cached_views
from protocon.engine.setup.session import settle
from protocon.engine.setup.settled import Settled
from protocon.engine.setup.view_factory import MIRRORED
from protocon.runs.run_data import cache_folder
from protocon.settings.config import RunConfig

_MIN_LABELS = 8
"""Fewer can hardly be clear evidence, and are not asked."""
_MAX_LABELS = 1000
"""So many are enough; spread evenly over all."""
_WORTH_A_BAR = 100
"""Features of fewer images are there in a moment."""


def ask_about_mirrors(
    config: RunConfig, settled: Settled, console: Console, device: torch.device
) -> tuple[RunConfig, Settled]:
    """Settings without mirrored views where mirroring clearly changes the labels; else as they are, with the figures.

    Asked only of one's own images on a frozen encoder, where `views.flip` is auto. Features of the labelled images and
    of their mirror images are computed for it, which the run needs anyway.

    Args:
        config: as asked for.
        settled: what `settle` made of it.
        console: for progress.
        device: where to compute features.
    """
    resolved, bundle, labelled = settled.config, settled.bundle, settled.split.labelled
    wanted = resolved.network.frozen and resolved.views.flip and config.views.flip == "auto"
    if not wanted or config.data.name not in OWN or len(bundle.train.shape) != 3 or len(labelled) < _MIN_LABELS:
        return config, settled
    chosen = labelled[np.unique(np.linspace(0, len(labelled) - 1, min(len(labelled), _MAX_LABELS)).astype(np.int64))]
    encoder = build_frozen(resolved, bundle).to(device)
    images = bundle.train.subset(chosen)
    shown = console if len(chosen) > _WORTH_A_BAR else Console(quiet=True)
    views = cached_views(images, encoder, [CLEAN, MIRRORED], cache=cache_folder(config), console=shown).tensor
    own = encoder.parts[0] if encoder.parts else encoder.features
    rows = views[:, :, :own].float().numpy()
    evidence = mirror_evidence(rows[:, 0], rows[:, 1], images.labels)
    if not evidence.changes_labels:
        return config, _with_reason(settled, f"True ({evidence})")
    line = _line(evidence)
    unmirrored = config.model_copy(update={"views": config.views.model_copy(update={"flip": False})})
    files = bundle.files or FileReport(used=len(bundle.train))
    noted = replace(bundle, files=replace(files, notes=(*files.notes, line)))
    if bundle.files is None:  # there is no list of files to say it with
        console.print(line, markup=False, highlight=False, soft_wrap=True)
        noted = bundle
    found = settle(unmirrored, noted, split=settled.split)
    return unmirrored, _with_reason(found, f"False ({evidence}; p = {evidence.p_value:.2g})")


def _line(evidence: MirrorEvidence) -> str:
    return (
        f"mirroring changes your labels: {evidence} (p = {evidence.p_value:.2g}), so no image is mirrored in training. "
        "views.flip=true overrules this"
    )


def _with_reason(settled: Settled, reason: str) -> Settled:
    reasons = {**settled.resolved.reasons, "views.flip": reason}
    return replace(settled, resolved=replace(settled.resolved, reasons=reasons))
