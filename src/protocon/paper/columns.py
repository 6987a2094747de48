"""The columns of the tables: data and labels, and what of a recipe they change."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Settings = Mapping[str, Any]


@dataclass(frozen=True)
class Column:
    """One data set with one number of labels."""

    parent: str
    """The recipe that it extends."""
    data: str
    """A name of SIZES."""
    labels: int
    """Labelled images in all, as the tables count them; for ImageNet, those of the percentage."""
    settings: Mapping[str, Settings]
    """What differs from the parent in every method, section by section."""
    seeds: int
    ours: Settings = field(default_factory=dict)
    """What differs in ProtoCon's own settings."""
    theirs: Settings = field(default_factory=dict)
    """Settings of the other methods."""


def _few(parent: str, data: str, classes: int, per_class: int, *, seeds: int = 5, **more: Settings) -> Column:
    return Column(parent, data, classes * per_class, {"data": {"labels_per_class": per_class}}, seeds, **more)


def _domain(domain: str, per_class: int) -> Column:
    settings = {"data": {"domain": domain, "labels_per_class": per_class}}
    return Column("paper-domainnet", domain, 345 * per_class, settings, 1, theirs=_LARGE)


def _percent(share: float, labels: int) -> Column:
    return Column("paper-imagenet", "imagenet", labels, {"data": {"labels_percent": share}}, 1, theirs=_LARGE)


_LARGE: Settings = {"threshold": 0.7, "lambda_u": 10}
"""τ from the text; λ_u = 10 is FixMatch's for ImageNet, to which the text refers. ProtoCon's weights are all 1."""
_NEAR: Settings = {"neighbours": 25, "clusters": 2000}
"""The moderate-label regime: n = 25 instead of 250, and so K = 50,000 / 25."""

COLUMNS = {
    "cifar10-20": _few("paper-cifar10", "cifar10", 10, 2),
    "cifar10-40": _few("paper-cifar10", "cifar10", 10, 4),
    "cifar10-80": _few("paper-cifar10", "cifar10", 10, 8),
    "cifar100-200": _few("paper-cifar100", "cifar100", 100, 2),
    "cifar100-400": _few("paper-cifar100", "cifar100", 100, 4),
    "cifar100-800": _few("paper-cifar100", "cifar100", 100, 8),
    "mini-imagenet-400": _few("paper-mini-imagenet", "mini-imagenet", 100, 4),
    "mini-imagenet-1000": _few("paper-mini-imagenet", "mini-imagenet", 100, 10),
    "cifar100-2500": _few("paper-cifar100", "cifar100", 100, 25, seeds=3, ours=_NEAR),
    "cifar100-4000": _few("paper-cifar100", "cifar100", 100, 40, seeds=3, ours=_NEAR),
    "mini-imagenet-2500": _few("paper-mini-imagenet", "mini-imagenet", 100, 25, seeds=3, ours=_NEAR),
    "mini-imagenet-4000": _few("paper-mini-imagenet", "mini-imagenet", 100, 40, seeds=3, ours=_NEAR),
    "clipart-690": _domain("clipart", 2),
    "clipart-1380": _domain("clipart", 4),
    "clipart-2760": _domain("clipart", 8),
    "sketch-690": _domain("sketch", 2),
    "sketch-1380": _domain("sketch", 4),
    "sketch-2760": _domain("sketch", 8),
    "imagenet-0.2": _percent(0.2, 2562),
    "imagenet-1": _percent(1, 12_812),
    "imagenet-10": _percent(10, 128_117),
}
"""Every column by name: data set and number of labelled images (ImageNet: percentage)."""
