"""Mirrored views are not taken for granted: the labelled images say whether mirroring changes their labels."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch
from rich.console import Console

from protocon.augment.clean import CLEAN
from protocon.base.say import say
from protocon.core.mirror_test import mirror_evidence
from protocon.data.registry import OWN
from protocon.engine.setup.encode import build_frozen, cached_views
from protocon.engine.setup.settled import Settled
from protocon.engine.setup.view_factory import MIRRORED
from protocon.features.extract import FrozenEncoder
from protocon.runs.run_data import cache_folder
from protocon.settings.config import RunConfig

_MIN_LABELS = 8
"""Fewer can hardly be clear evidence, and are not asked."""
_MAX_LABELS = 1000
"""So many are enough; spread evenly over all."""
_WORTH_A_BAR = 100
"""Features of fewer images are there in a moment."""


@dataclass(frozen=True)
class MirrorAnswer:
    """What the labels say."""

    settled: Settled
    """The run, without mirrored views where these change labels."""
    reason: str = ""
    """For the list of settings that were chosen; empty where nothing was asked."""
    line: str = ""
    """For a user; empty where nothing changes."""
    encoder: FrozenEncoder | None = None
    """The encoder that was asked, for the features of all images; None where nothing was asked."""


def ask_about_mirrors(
    config: RunConfig,
    settled: Settled,
    console: Console,
    device: torch.device,
    *,
    after_chunk: Callable[[], None] = lambda: None,
) -> MirrorAnswer:
    """Whether mirroring clearly changes the labels: then no view is mirrored.

    Asked only of one's own images on a frozen encoder, where `views.flip` is auto. Features of the labelled images and
    of their mirror images are computed for it, which the run needs anyway. The same labels give the same answer, so
    that a run that was interrupted before it was written down asks again.

    Args:
        config: as asked for.
        settled: what `settle` made of it.
        console: for progress.
        device: where to compute features.
        after_chunk: called whenever a part of the features is in the cache; may raise.
    """
    resolved, bundle, labelled = settled.config, settled.bundle, settled.split.labelled
    wanted = resolved.network.frozen and resolved.views.flip and config.views.flip == "auto"
    if not wanted or config.data.name not in OWN or len(bundle.train.shape) != 3 or len(labelled) < _MIN_LABELS:
        return MirrorAnswer(settled)
    chosen = labelled[np.unique(np.linspace(0, len(labelled) - 1, min(len(labelled), _MAX_LABELS)).astype(np.int64))]
    encoder = build_frozen(resolved, bundle).to(device)
    images = bundle.train.subset(chosen)
    shown = console if len(chosen) > _WORTH_A_BAR else Console(quiet=True)
    cached = partial(cached_views, cache=cache_folder(config), console=shown, after_chunk=after_chunk)
    views = cached(images, encoder, [CLEAN, MIRRORED]).tensor
    own = encoder.parts[0].width
    rows = views[:, :, :own].float().numpy()
    evidence = mirror_evidence(rows[:, 0], rows[:, 1], images.labels)
    if not evidence.changes_labels:
        return MirrorAnswer(settled, f"True ({evidence})", encoder=encoder)
    unmirrored = resolved.model_copy(update={"views": resolved.views.model_copy(update={"flip": False})})
    told = f"{evidence} (p = {evidence.p_value:.2g})"
    line = f"mirroring changes your labels: {told}, so no image is mirrored in training. views.flip=true overrules this"
    say(console, line)
    changed = replace(settled, resolved=replace(settled.resolved, config=unmirrored))
    return MirrorAnswer(changed, f"False ({told})", line, encoder)
