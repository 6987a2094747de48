"""The data that settings name, and the labels of it that a run is given."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from protocon.data.imageset import DataBundle, ImageSet
from protocon.data.labels.label_split import Split, make_split, split_without_labels
from protocon.data.labels.split_file import load_split
from protocon.data.registry import DATASETS, OWN
from protocon.data.source_options import MEMORY_LIMIT, Progress, SourceOptions
from protocon.errors import ConfigError
from protocon.features.key import default_cache
from protocon.methods import METHODS
from protocon.settings.auto import fit_for, image_size_for, largest_side
from protocon.settings.config import RunConfig

_FROZEN_MEMORY = 2**26
"""A frozen encoder sees each image once, so that more than this is not worth holding in memory."""


def load_data(
    config: RunConfig, progress: Progress | None = None, *, source: Callable[[SourceOptions], DataBundle] | None = None
) -> DataBundle:
    """The data set that a config names.

    Args:
        config: of a run.
        progress: told how many files are decoded.
        source: reads the data in the place of the source that the config names.
    """
    data = config.data
    source = source or DATASETS[data.name]
    size = data.size_asked
    largest = largest_side(config)
    options = SourceOptions(
        root=data.root,
        labels=data.labels,
        image_size=size,
        grey=data.grey,
        squash=fit_for(config) == "squash",
        domain=data.domain,
        test_fraction=data.test_fraction,
        storage=data.storage,
        bad_files=data.bad_files,
        memory_limit=_FROZEN_MEMORY if config.network.frozen else MEMORY_LIMIT,
        record=cache_folder(config) if config.network.frozen else None,
        largest_auto=min(largest, image_size_for(largest, config)),
        smallest_auto=image_size_for(0, config),
        progress=progress,
    )
    bundle = source(options)
    shape = bundle.train.shape
    if size is None and len(shape) == 3:
        wanted = image_size_for(shape[-1], config)
        if data.name in OWN:
            wanted = min(wanted, largest)
        if shape[-1] != wanted:
            bundle = source(replace(options, image_size=wanted))
    return bundle


def cache_folder(config: RunConfig) -> Path:
    """Where features, and what is known of files, are kept."""
    return (config.run.cache or default_cache()).expanduser()


def choose_split(config: RunConfig, train: ImageSet) -> Split:
    """The split file that was given, or labels drawn as asked; no labels for a method that does without."""
    data = config.data
    if not METHODS[config.method_name].uses_labels:
        return split_without_labels(train, seed=config.run.seed)
    if data.split is not None:
        return load_split(data.split, train)
    if data.labels_per_class is not None and data.labels_percent is not None:
        raise ConfigError("labels_per_class and labels_percent are both set; give one of them")
    return make_split(
        train,
        per_class=data.labels_per_class,
        fraction=None if data.labels_percent is None else data.labels_percent / 100,
        seed=config.run.seed,
        include_labelled=data.include_labelled,
    )
