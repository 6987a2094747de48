"""Views of images without a change of colour: weak views to learn from, and the one to evaluate on."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from protocon.augment.batches import FLOAT_BLOCK, PIXEL_BLOCK, in_blocks, write_pixels
from protocon.augment.colour import to_pixels
from protocon.augment.crops import check_scale, random_boxes
from protocon.augment.geometry import windows
from protocon.augment.resize import resized_crops
from protocon.augment.slots import Slot
from protocon.draws import uniform
from protocon.errors import ConfigError


@dataclass(frozen=True)
class WeakView:
    """FixMatch's weak view: mirrored half of the time, and moved by whole pixels with reflected borders.

    Pixels are moved, never mixed, so the view has the image's size and its exact levels.
    """

    flip: bool
    """Mirror left to right with probability 1/2; not where a mirror image means something else, as with digits."""
    translate: float = 0.125
    """Furthest move along each axis, a share of that side; every whole move up to it is equally likely."""

    def __post_init__(self) -> None:
        if not 0.0 <= self.translate < 1.0:
            raise ConfigError(f"translate is a share of the image's side in [0, 1); got {self.translate}.")

    def __call__(self, images: Tensor, keys: Tensor) -> Tensor:
        """Weak views, float32 (B, C, H, W)."""
        return in_blocks(
            images,
            keys,
            size=(images.shape[-2], images.shape[-1]),
            limit=PIXEL_BLOCK,
            make=lambda block, block_keys, out: write_pixels(self.pixels(block, block_keys), out),
        )

    def pixels(self, images: Tensor, keys: Tensor) -> Tensor:
        """Weak views, uint8 (B, C, H, W)."""
        count, channels, height, width = images.shape
        u = uniform(keys, Slot.WEAK, 3)
        across, down = self._reach(width), self._reach(height)
        dx = (u[:, 0] * (2 * across + 1)).long()  # 0 … 2·across: where the window starts in the padded row
        dy = (u[:, 1] * (2 * down + 1)).long() - down
        padded = self._padded(images, across)
        # Row y comes from row y + dy, reflected at the borders without repeating the border row.
        rows = (torch.arange(height, device=images.device) + dy[:, None]).abs()
        rows = (height - 1) - (height - 1 - rows).abs()
        planes = torch.arange(count * channels, device=images.device).view(count, channels)
        if self.flip:
            planes = planes + (u[:, 2] < 0.5).long()[:, None] * (count * channels)
        starts = (planes[:, :, None] * height + rows[:, None]) * (width + 2 * across) + dx[:, None, None]
        return windows(padded, starts, width)

    def _padded(self, images: Tensor, across: int) -> Tensor:
        """Rows with `across` reflected pixels at both ends, and behind them, if wanted, all of them mirrored."""
        width = images.shape[3]
        mirrored = images.flip(-1)
        padded = images.new_empty(1 + self.flip, *images.shape[:3], width + 2 * across)
        for way, (row, reverse) in enumerate(((images, mirrored), (mirrored, images))[: 1 + self.flip]):
            padded[way, ..., across : across + width] = row
            padded[way, ..., :across] = reverse[..., width - 1 - across : width - 1]
            padded[way, ..., across + width :] = reverse[..., 1 : across + 1]
        return padded

    def _reach(self, side: int) -> int:
        return min(round(self.translate * side), side - 1)


@dataclass(frozen=True)
class RandomCropFlip:
    """A random resized crop, mirrored half of the time: the weak view of large images."""

    size: int
    """Side of the view in pixels."""
    scale: tuple[float, float] = (0.2, 1.0)
    """Lowest and highest share of the image's area."""
    ratio: tuple[float, float] = (3.0 / 4.0, 4.0 / 3.0)
    """Lowest and highest width / height."""
    flip: bool = True
    """Mirror left to right with probability 1/2."""

    def __post_init__(self) -> None:
        check_size(self.size)
        check_scale(self.scale, self.ratio)

    def __call__(self, images: Tensor, keys: Tensor) -> Tensor:
        """Crops, float32 (B, C, size, size)."""
        return in_blocks(
            images,
            keys,
            size=(self.size, self.size),
            limit=FLOAT_BLOCK,
            make=lambda block, block_keys, out: write_pixels(self.pixels(block, block_keys), out),
        )

    def pixels(self, images: Tensor, keys: Tensor) -> Tensor:
        """Crops rounded to 8 bits, as PIL gives them: uint8 (B, C, size, size)."""
        return to_pixels(self.levels(images, keys).add_(0.5))

    def levels(self, images: Tensor, keys: Tensor) -> Tensor:
        """Crops before rounding: float32 (B, C, size, size) in 0 … 255."""
        height, width = images.shape[2:]
        boxes, mirrored = random_boxes(keys, height, width, scale=self.scale, ratio=self.ratio)
        return resized_crops(images, boxes, self.size, mirrored if self.flip else None)


@dataclass(frozen=True)
class CentreView:
    """The view to evaluate on: the centred square, resized. Keys are taken and ignored, so it fits any view's place.

    An image of the right size already is returned level for level.
    """

    size: int
    """Side of the view in pixels."""
    crop: float = 1.0
    """Side of the square as a share of the image's shorter side; 0.875 is the usual centre crop of ImageNet."""

    def __post_init__(self) -> None:
        check_size(self.size)
        if not 0.0 < self.crop <= 1.0:
            raise ConfigError(f"crop is a share of the image's shorter side in (0, 1]; got {self.crop}.")

    def __call__(self, images: Tensor, keys: Tensor) -> Tensor:
        """Centred squares, float32 (B, C, size, size)."""
        return in_blocks(
            images,
            keys,
            size=(self.size, self.size),
            limit=FLOAT_BLOCK,
            make=lambda block, block_keys, out: write_pixels(self.pixels(block, block_keys), out),
        )

    def pixels(self, images: Tensor, keys: Tensor) -> Tensor:  # noqa: ARG002 (the place of every view's keys)
        """Centred squares, uint8 (B, C, size, size)."""
        count, _, height, width = images.shape
        side = max(1, math.floor(self.crop * min(height, width) + 0.5))
        if height == width == side == self.size:
            return images.clone()
        box = torch.tensor([(height - side) // 2, (width - side) // 2, side, side], device=images.device)
        return to_pixels(resized_crops(images, box.float().expand(count, 4), self.size).add_(0.5))


def check_size(size: int) -> None:
    """Raise `ConfigError` unless the side of a view is a positive whole number."""
    if size < 1:
        raise ConfigError(f"A view's size is its side in pixels, at least 1; got {size}.")
