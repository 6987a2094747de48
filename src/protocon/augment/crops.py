"""Boxes of random resized crops (Szegedy et al., 2015), one per image, from its key."""

import math

import torch
from torch import Tensor

from protocon.augment.slots import Slot
from protocon.base.draws import uniform
from protocon.errors import ConfigError

_TRIES = 10


def check_scale(scale: tuple[float, float], ratio: tuple[float, float]) -> None:
    """Raise `ConfigError` unless the shares of area are in (0, 1], the ratios positive, and both in order."""
    if not 0.0 < scale[0] <= scale[1] <= 1.0:
        raise ConfigError(f"A crop's scale is (low, high), shares of the area with 0 < low <= high <= 1; got {scale}.")
    if not 0.0 < ratio[0] <= ratio[1]:
        raise ConfigError(f"A crop's ratio is (low, high), width over height with 0 < low <= high; got {ratio}.")


def random_boxes(
    keys: Tensor, height: int, width: int, *, scale: tuple[float, float], ratio: tuple[float, float]
) -> tuple[Tensor, Tensor]:
    """Draw one box per key: (n, 4) whole float32 numbers, top, left, height, width; and a fair coin, bool (n,).

    The share of the area is uniform in `scale`, the logarithm of width / height uniform in that of `ratio`. The
    first of ten tries that fits the image is taken; if none does, the largest centred box of an allowed ratio.

    Args:
        keys: one per image, (n,) int64.
        height: of the images.
        width: of the images.
        scale: lowest and highest share of the area.
        ratio: lowest and highest width / height.
    """
    u = uniform(keys, Slot.CROP, 2 * _TRIES + 3)
    area = height * width * (scale[0] + (scale[1] - scale[0]) * u[:, :_TRIES])
    low, high = math.log(ratio[0]), math.log(ratio[1])
    aspect = torch.exp(low + (high - low) * u[:, _TRIES : 2 * _TRIES])
    tried_width = torch.sqrt(area * aspect).round_()
    tried_height = torch.sqrt(area / aspect).round_()
    fits = (tried_width >= 1) & (tried_width <= width) & (tried_height >= 1) & (tried_height <= height)
    first = fits.int().argmax(dim=1, keepdim=True)
    box_width = tried_width.gather(1, first)[:, 0]
    box_height = tried_height.gather(1, first)[:, 0]
    top = (u[:, -3] * (height - box_height + 1)).floor_()
    left = (u[:, -2] * (width - box_width + 1)).floor_()
    boxes = torch.stack([top, left, box_height, box_width], dim=1)
    fallback = torch.tensor(_largest_centred(height, width, ratio), device=keys.device)
    return torch.where(fits.any(dim=1, keepdim=True), boxes, fallback), u[:, -1] < 0.5


def _largest_centred(height: int, width: int, ratio: tuple[float, float]) -> list[float]:
    box_height, box_width = height, width
    if width / height < ratio[0]:
        box_height = min(height, round(width / ratio[0]))
    elif width / height > ratio[1]:
        box_width = min(width, round(height * ratio[1]))
    return [
        float((height - box_height) // 2),
        float((width - box_width) // 2),
        float(box_height),
        float(box_width),
    ]
