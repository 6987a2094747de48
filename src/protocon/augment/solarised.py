"""Solarisation of some images, after any other view (DINO's second large crop)."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from protocon.augment.slots import Slot
from protocon.base.draws import uniform
from protocon.errors import ConfigError

_THRESHOLD = 128 / 255
"""PIL's: levels from 128 of 255 on are inverted."""


@dataclass(frozen=True)
class SolarisedView:
    """Another view, whose bright pixels are inverted with a probability.

    (B, C, H, W) uint8 -> float32 of the other view's shape.
    """

    view: Callable[[Tensor, Tensor], Tensor]
    probability: float = 0.2

    def __post_init__(self) -> None:
        if not 0.0 <= self.probability <= 1.0:
            raise ConfigError(f"probability of solarisation is in [0, 1]; got {self.probability}.")

    def __call__(self, images: Tensor, keys: Tensor) -> Tensor:
        """The other view of all images, solarised or not."""
        seen = self.view(images, keys)
        chosen = uniform(keys, Slot.SOLARISED)[:, 0] < self.probability
        inverted = chosen[:, None, None, None] & (seen >= _THRESHOLD)
        return torch.where(inverted, 1.0 - seen, seen)
