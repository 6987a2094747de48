"""Which colours an image has, and where: what a network that was trained on ImageNet has learnt to overlook.

Its training rewards the same answer whatever the light and the paint, so two images that differ in colour alone have
nearly the same features. In a folder of skin lesions, fruit or paintings the colours tell classes apart. They are
counted beside the network, by hand, because no library counts a whole batch, in steps that ONNX has too.
"""

from functools import cache
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from protocon.base.parts import Part, Parts

CHANNELS = 3
SHADES = 8
"""Of each scale: with more of them neighbouring shades are strangers to each other."""
_SIDE = 48
"""Images are averaged down to about so many pixels a side."""
_SCALES = (
    ((1 / 3, 1 / 3, 1 / 3), 0.0, 1.0),
    ((1.0, -1.0, 0.0), -0.4, 0.4),
    ((0.5, 0.5, -1.0), -0.5, 0.5),
)
"""Brightness, red against green, yellow against blue: weights of the channels; first and last shade. Few pixels have
more colour than that, and they count as the last shade."""
_MIDDLE, _ABOVE = 0.5, 1 / 3
"""The middle region's half sides, and where the regions above and below the middle begin; the image's half is 1."""
REGIONS = 4
COUNT = len(_SCALES) * SHADES * REGIONS


class ColourShares(nn.Module):
    """Normalised images (n, 3, H, W) → (n, 96): each shade's share of each region, scale by scale.

    A pixel between two shades counts for both in part.

    Args:
        mean: that images were normalised with, per channel, of pixels in [0, 1].
        std: likewise.
    """

    mixing: Tensor
    """From channels to places on the scales, 0 for the first shade, (3, 3, 1, 1)."""
    offset: Tensor
    """(3,)."""

    def __init__(self, mean: tuple[float, ...], std: tuple[float, ...]) -> None:
        super().__init__()
        weights = torch.tensor([channels for channels, _, _ in _SCALES], dtype=torch.float64)
        first = torch.tensor([low for _, low, _ in _SCALES], dtype=torch.float64)
        steps = (SHADES - 1) / torch.tensor([high - low for _, low, high in _SCALES], dtype=torch.float64)
        known, spread = torch.tensor(mean, dtype=torch.float64), torch.tensor(std, dtype=torch.float64)
        usual = torch.get_default_dtype()
        self.register_buffer("mixing", (steps[:, None] * weights * spread)[:, :, None, None].to(usual))
        self.register_buffer("offset", (steps * (weights @ known - first)).to(usual))

    def forward(self, x: Tensor) -> Tensor:
        """Shares that sum to 1 for each scale and region."""
        small = F.avg_pool2d(x, reduction(*x.shape[-2:]))
        places = F.conv2d(small, self.mixing, self.offset).clamp(0, SHADES - 1)
        shades = torch.arange(SHADES, dtype=x.dtype, device=x.device).view(-1, 1, 1)
        near = (1 - (places[:, :, None] - shades).abs()).clamp(min=0)
        weights = torch.tensor(regions(*small.shape[-2:]), dtype=x.dtype, device=x.device)
        return (near.flatten(3) @ weights).flatten(1)


def reduction(high: int, wide: int) -> tuple[int, int]:
    """How many pixels are averaged to one, in either direction."""
    return max(1, high // _SIDE), max(1, wide // _SIDE)


@cache
def regions(high: int, wide: int) -> np.ndarray:
    """The middle, and what is above, beside and below it: weights of the pixels, (H·W, 4), that sum to 1 for each.

    Left and right are one region, so that a mirror image has the same colours. A region without a pixel, in very small
    images, is the whole image.
    """
    down, across = np.meshgrid(*((2 * np.arange(side) + 1) / side - 1 for side in (high, wide)), indexing="ij")
    middle = (np.abs(down) < _MIDDLE) & (np.abs(across) < _MIDDLE)
    beside = ~middle & (np.abs(down) < _ABOVE)
    places = np.stack([middle, ~middle & (down <= -_ABOVE), beside, ~middle & (down >= _ABOVE)], axis=-1)
    counted = places.reshape(-1, REGIONS).astype(np.float64)
    counted[:, counted.sum(axis=0) == 0] = 1
    return np.asarray(counted / counted.sum(axis=0), dtype=np.float32)


class WithColours(nn.Module):
    """Normalised images (n, 3, H, W) → (n, D + 96): an encoder's features, then the shares of colours.

    Args:
        backbone: the encoder.
        parts: what its features consist of.
        mean: that images were normalised with, per channel, of pixels in [0, 1].
        std: likewise.
    """

    def __init__(self, backbone: Any, parts: Parts, *, mean: tuple[float, ...], std: tuple[float, ...]) -> None:
        super().__init__()
        self.backbone = backbone
        self.colours = ColourShares(mean, std)
        self.parts: Parts = (*parts, Part(COUNT, "colours"))

    def forward(self, x: Tensor) -> Tensor:
        """Input of the heads."""
        return torch.cat([self.backbone(x), self.colours(x)], dim=1)
