"""The sizes of the paper's data sets, so that a recipe can be shown without the data."""

from dataclasses import dataclass


@dataclass(frozen=True)
class DatasetSize:
    """What estimates need to know of a data set."""

    train: int
    test: int
    classes: int
    side: int
    """Pixels that the network sees."""


SIZES = {
    "cifar10": DatasetSize(50_000, 10_000, 10, 32),
    "cifar100": DatasetSize(50_000, 10_000, 100, 32),
    "mini-imagenet": DatasetSize(50_000, 10_000, 100, 84),
    "clipart": DatasetSize(33_525, 14_604, 345, 224),
    "sketch": DatasetSize(48_212, 20_916, 345, 224),
    "imagenet": DatasetSize(1_281_167, 50_000, 1000, 224),
}
"""By the name of the data set, or of DomainNet's domain."""
