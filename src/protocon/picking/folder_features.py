"""A folder of images as features, through the cache that training uses too."""

from dataclasses import dataclass

import numpy as np
from rich.console import Console

from protocon.base.parts import Parts
from protocon.data.imageset import ImageSet
from protocon.data.sources.unlabelled_folder import unlabelled_folder
from protocon.engine.setup.announce import bar
from protocon.engine.setup.encode import build_frozen, cached_views
from protocon.engine.setup.fabric import build_fabric
from protocon.engine.setup.view_factory import image_views
from protocon.runs.run_data import cache_folder, load_data
from protocon.settings.auto import resolve_auto
from protocon.settings.config import RunConfig


@dataclass(frozen=True)
class Encoded:
    """Images with what a frozen encoder says of each."""

    images: ImageSet
    features: np.ndarray
    """(N, D) float32, mean over each image's views."""
    parts: Parts
    """Lengths of the encoder's own features and of its pooled blocks."""
    warnings: tuple[str, ...]
    """What a user should know of the files, one line each."""


def encode_folder(config: RunConfig, console: Console) -> Encoded:
    """Features of the images below `config.data.root`, from the table that training uses too.

    Args:
        config: `data.root`, and what else is asked of data, network and cache; the encoder is frozen in any case.
        console: for progress.
    """
    config = config.model_copy(update={"network": config.network.model_copy(update={"frozen": True})})
    with bar(console) as progress:
        bundle = load_data(config, progress, source=unlabelled_folder)
    images = bundle.train
    resolved = resolve_auto(config, shape=images.shape, flip=bundle.hints.flip, unlabelled=len(images)).config
    encoder = build_frozen(resolved, bundle).to(build_fabric(resolved).device)
    # All views that training looks at, so that it finds them there.
    wanted = image_views(resolved, shape=images.shape)
    views = cached_views(images, encoder, wanted, cache=cache_folder(config), console=console, precision="half")
    report = bundle.files
    skipped = [] if report is None else [f"{s.path} is not used: {s.reason}" for s in report.skipped]
    return Encoded(images, views.mean().numpy(), encoder.parts, (*(report.warnings if report else ()), *skipped))
