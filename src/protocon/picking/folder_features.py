"""A folder of images as features, through the cache that training uses too."""

from dataclasses import dataclass, replace

import numpy as np
from rich.console import Console

from protocon.augment.clean import CLEAN
from protocon.data.imageset import DataBundle, ImageSet
from protocon.data.source_options import SourceOptions
from protocon.data.sources.unlabelled_folder import unlabelled_folder
from protocon.engine.setup.announce import bar
from protocon.engine.setup.encode import build_frozen, cached_views
from protocon.engine.setup.fabric import build_fabric
from protocon.features.key import default_cache
from protocon.settings.auto import image_size_for, largest_side, resolve_auto
from protocon.settings.config import RunConfig


@dataclass(frozen=True)
class Encoded:
    """Images with what a frozen encoder says of each."""

    images: ImageSet
    features: np.ndarray
    """(N, D) float32."""
    warnings: tuple[str, ...]
    """What a user should know of the files, one line each."""


def encode_folder(config: RunConfig, console: Console) -> Encoded:
    """Features of the clean images below `config.data.root`; what is in the cache is not computed again.

    Args:
        config: `data.root`, and what else is asked of data, network and cache; the encoder is frozen in any case.
        console: for progress.
    """
    config = config.model_copy(update={"network": config.network.model_copy(update={"frozen": True})})
    bundle = _load(config, console)
    images = bundle.train
    resolved = resolve_auto(config, shape=images.shape, flip=bundle.hints.flip, unlabelled=len(images)).config
    encoder = build_frozen(resolved, bundle).to(build_fabric(resolved).device)
    cache = (resolved.run.cache or default_cache()).expanduser()
    views = cached_views(images, encoder, [CLEAN], cache=cache, console=console)
    report = bundle.files
    skipped = [] if report is None else [f"{s.path} is not used: {s.reason}" for s in report.skipped]
    return Encoded(images, views.clean(most=len(views)).numpy(), (*(report.warnings if report else ()), *skipped))


def _load(config: RunConfig, console: Console) -> DataBundle:
    """The images at the size that a frozen encoder gets where none is asked for."""
    data = config.data
    largest = largest_side(config)
    with bar(console) as progress:
        options = SourceOptions(
            root=data.root,
            labels=data.labels,
            image_size=data.size_asked,
            grey=data.grey,
            storage=data.storage,
            bad_files=data.bad_files,
            largest_auto=largest,
            progress=progress,
        )
        bundle = unlabelled_folder(options)
        side = bundle.train.shape[-1]
        wanted = min(image_size_for(side, config), largest)
        if data.size_asked is None and side != wanted:
            bundle = unlabelled_folder(replace(options, image_size=wanted))
    return bundle
