"""Views of images without a change of colour: weak views to learn from, and the one to evaluate on."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from protocon.augment.batches import (
    FLOAT_BLOCK,
    MOVE_BLOCK,
    Engine,
    blocks,
    check_images,
    in_blocks,
    runs_fused,
    write_pixels,
    write_planes,
)
from protocon.augment.crops import check_scale, random_boxes
from protocon.augment.geometry import windows
from protocon.augment.resized_crop import Taps, crop_taps, resample, round_levels
from protocon.augment.slots import Slot
from protocon.base.draws import uniform
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
    engine: Engine = "torch"

    def __post_init__(self) -> None:
        if not 0.0 <= self.translate < 1.0:
            raise ConfigError(f"translate is a share of the image's side in [0, 1); got {self.translate}.")

    def __call__(self, images: Tensor, keys: Tensor) -> Tensor:
        """Weak views, float32 (B, C, H, W)."""
        check_images(images, keys)
        if runs_fused(self.engine, images):
            from protocon.augment.fused.randaugment_kernels import weak

            view = torch.empty((len(images), *images.shape[2:], images.shape[1]), dtype=torch.float32)
            weak(images, self.moves(keys, images.shape), view)
            return view.permute(0, 3, 1, 2)
        starts = self._starts(keys, images.shape)

        def make(block: Tensor, rows: slice, out: Tensor) -> None:
            write_pixels(self._moved(block, starts[rows]), out)

        return in_blocks(images, size=(images.shape[2], images.shape[3]), limit=MOVE_BLOCK, make=make)

    def pixels(self, images: Tensor, keys: Tensor) -> Tensor:
        """Weak views, uint8 (B, C, H, W)."""
        starts = self._starts(keys, images.shape)
        view = torch.empty_like(images, memory_format=torch.contiguous_format)
        for rows in blocks(len(images), images.shape[2] * images.shape[3], MOVE_BLOCK):
            view[rows] = self._moved(images[rows], starts[rows])
        return view

    def output_size(self, height: int, width: int) -> tuple[int, int]:
        """The image's own size."""
        return height, width

    def moves(self, keys: Tensor, shape: torch.Size) -> Tensor:
        """How far each view's pixels come from, across and down, int64 (B, 2), in the image continued by reflection.

        Mirrored is moved by W − 1 more: there the image runs backwards.
        """
        reach = [self._reach(shape[3]), self._reach(shape[2])]
        u = uniform(keys, Slot.WEAK, 3)
        moves = torch.stack([(u[:, 0] * (2 * reach[0] + 1)).long(), (u[:, 2] * (2 * reach[1] + 1)).long()], dim=1)
        moves -= torch.tensor(reach, device=keys.device)
        if self.flip:
            moves[:, 0] += (u[:, 1] < 0.5).long() * (shape[3] - 1)
        return moves

    def _starts(self, keys: Tensor, shape: torch.Size) -> Tensor:
        """Where each row of each view begins in its extended image, (B, C, H) int64."""
        _, channels, height, width = shape
        across, down = self._reach(width), self._reach(height)
        u = uniform(keys, Slot.WEAK, 3)
        start = (u[:, 0] * (2 * across + 1)).long()
        if self.flip:
            start += (u[:, 1] < 0.5).long() * (width - 1)
        # Row y comes from row y + dy, reflected at the borders without repeating the border row.
        reflected = torch.arange(-down, height + down, device=keys.device).abs_()
        reflected = height - 1 - (height - 1 - reflected).abs_()
        rows = windows(reflected, (u[:, 2] * (2 * down + 1)).long(), height)
        first = torch.arange(0, channels * height, height, device=keys.device)[:, None]
        return (first + rows[:, None]) * self._length(width) + start[:, None, None]

    def _moved(self, images: Tensor, starts: Tensor) -> Tensor:
        """The views of these images, from where their rows begin."""
        extended = self._extended(images)
        first = torch.arange(len(images), device=images.device) * extended.stride(0)
        return windows(extended, starts + first[:, None, None], images.shape[3])

    def _extended(self, images: Tensor) -> Tensor:
        """Rows continued by reflection, so that any W pixels from 0 … 2·across on are a moved row.

        Reflected once more at its end, a row runs backwards: W - 1 further on the same windows are mirrored.
        """
        width = images.shape[3]
        across = self._reach(width)
        mirrored = images.flip(-1)
        extended = images.new_empty(*images.shape[:3], self._length(width))
        end = extended.shape[3] - across
        extended[..., :across] = mirrored[..., width - 1 - across : width - 1]
        extended[..., across : across + width] = images
        if self.flip:
            extended[..., across + width : end] = mirrored[..., 1:]
        extended[..., end:] = (images if self.flip else mirrored)[..., 1 : across + 1]
        return extended

    def _length(self, width: int) -> int:
        return 2 * self._reach(width) + (2 * width - 1 if self.flip else width)

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
    engine: Engine = "torch"

    def __post_init__(self) -> None:
        check_size(self.size)
        check_scale(self.scale, self.ratio)

    def __call__(self, images: Tensor, keys: Tensor) -> Tensor:
        """Crops, not rounded to levels: float32 (B, C, size, size)."""
        check_images(images, keys)
        columns, rows = self.taps(keys, images.shape[2], images.shape[3])
        if runs_fused(self.engine, images):
            from protocon.augment.fused.crop import crops

            view = torch.empty((len(images), self.size, self.size, images.shape[1]), dtype=torch.float32)
            crops(images, columns, rows, view)
            return view.permute(0, 3, 1, 2)

        def make(block: Tensor, part: slice, out: Tensor) -> None:
            write_planes(resample(block, columns[part], rows[part]), out)

        return in_blocks(images, size=(self.size, self.size), limit=FLOAT_BLOCK, make=make)

    def pixels(self, images: Tensor, keys: Tensor) -> Tensor:
        """Crops rounded to 8 bits, as PIL gives them: uint8 (B, C, size, size)."""
        if runs_fused(self.engine, images):
            return round_levels(self(images, keys)).contiguous()
        columns, rows = self.taps(keys, images.shape[2], images.shape[3])
        return round_levels(resample(images, columns, rows))

    def output_size(self, height: int, width: int) -> tuple[int, int]:  # noqa: ARG002 (of any image)
        """A square of `size`."""
        return self.size, self.size

    def taps(self, keys: Tensor, height: int, width: int) -> tuple[Taps, Taps]:
        """Source columns and rows of the views of these keys.

        Args:
            keys: one per image, (n,) int64.
            height: of the images.
            width: of the images.
        """
        boxes, mirrored = random_boxes(keys, height, width, scale=self.scale, ratio=self.ratio)
        return crop_taps(boxes, height, width, size=self.size, flip=mirrored if self.flip else None)


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
        check_images(images, keys)

        def make(block: Tensor, rows: slice, out: Tensor) -> None:
            write_pixels(self.pixels(block, keys[rows]), out)

        return in_blocks(images, size=(self.size, self.size), limit=FLOAT_BLOCK, make=make)

    def pixels(self, images: Tensor, keys: Tensor) -> Tensor:  # noqa: ARG002 (the place of every view's keys)
        """Centred squares, uint8 (B, C, size, size)."""
        count, _, height, width = images.shape
        side = max(1, math.floor(self.crop * min(height, width) + 0.5))
        if height == width == side == self.size:
            return images.clone()
        box = torch.tensor([(height - side) // 2, (width - side) // 2, side, side], device=images.device)
        columns, rows = crop_taps(box.float().expand(count, 4), height, width, size=self.size)
        return round_levels(resample(images, columns, rows))

    def output_size(self, height: int, width: int) -> tuple[int, int]:  # noqa: ARG002 (of any image)
        """A square of `size`."""
        return self.size, self.size


def check_size(size: int) -> None:
    """Raise `ConfigError` unless the side of a view is a positive whole number."""
    if size < 1:
        raise ConfigError(f"A view's size is its side in pixels, at least 1; got {size}.")
