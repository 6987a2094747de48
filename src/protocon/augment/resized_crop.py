"""Resized crops of a batch, each image with its own box: PIL's antialiased bilinear resize, separable.

`Image.crop(box).resize(size, BILINEAR)`: the triangle filter is as wide as the reduction where the image shrinks and
never reads beyond the crop. Columns first, rounded to 8 bits, then rows: PIL's order and rounding.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from protocon.augment.colour import to_pixels


@dataclass(frozen=True)
class Taps:
    """Which source rows (or columns) make each output row, and their weights."""

    index: Tensor
    """int64 (n, taps, size)."""
    weight: Tensor
    """float32 (n, taps, size), adding up to 1 over the taps."""

    def __getitem__(self, rows: slice | Tensor) -> "Taps":
        return Taps(self.index[rows], self.weight[rows])


def resized_crops(images: Tensor, boxes: Tensor, size: int, flip: Tensor | None = None) -> Tensor:
    """Cut `boxes` out of the images and resize them to size × size.

    Args:
        images: uint8 (n, C, H, W).
        boxes: (n, 4) whole float32 numbers: top, left, height, width, inside the image.
        size: side of the result.
        flip: bool (n,), which results are mirrored left to right.

    Returns:
        float32 (n, C, size, size) in [0, 1], not rounded.
    """
    return resample(images, *crop_taps(boxes, images.shape[2], images.shape[3], size=size, flip=flip))


def crop_taps(boxes: Tensor, height: int, width: int, *, size: int, flip: Tensor | None = None) -> tuple[Taps, Taps]:
    """Columns and rows that make up the resized crops of images of height × width.

    Args:
        boxes: top, left, height and width of each crop, (n, 4) whole float32 numbers.
        height: of the images.
        width: of the images.
        size: side of the results.
        flip: bool (n,), which results are mirrored left to right; None mirrors none.
    """
    top, left, box_height, box_width = boxes.unbind(1)
    columns = _taps(left, box_width, size, longest=width, flip=flip)
    return columns, _taps(top, box_height, size, longest=height)


def resample(images: Tensor, columns: Taps, rows: Taps) -> Tensor:
    """Weighted sums of columns, then of rows: uint8 (n, C, H, W) -> float32 (n, C, size, size) in [0, 1].

    Args:
        images: as stored.
        columns: source columns of every output column, with their weights.
        rows: likewise for rows.
    """
    # Whole rows are contiguous memory, columns are not: so the image is turned for the first pass, and back.
    turned = _resample_rows(images.transpose(2, 3).contiguous(), columns)
    narrow = to_pixels(turned.add_(0.5)).transpose(2, 3).contiguous()
    # Levels become shares of 255 by way of the few weights, not the many pixels.
    view = _resample_rows(narrow, Taps(rows.index, rows.weight * (1.0 / 255.0)))
    # Weights add up to 1 up to rounding.
    return view.clamp_(max=1.0)


def round_levels(view: Tensor) -> Tensor:
    """The nearest 8-bit levels of float images in [0, 1], which are overwritten: uint8."""
    return to_pixels(view.mul_(255.0).add_(0.5))


def _taps(start: Tensor, extent: Tensor, size: int, *, longest: int, flip: Tensor | None = None) -> Taps:
    """Taps of intervals that begin at `start` and are `extent` long, (n,) both, brought to `size`; some backwards.

    Their number is that of the longest possible interval, so it does not depend on the batch; surplus taps weigh 0.
    """
    place = torch.arange(size, device=start.device, dtype=torch.float32)
    if flip is not None:
        place = place + flip.float()[:, None, None] * (size - 1.0 - 2.0 * place)
    scale = (extent / size)[:, None, None]
    support = scale.clamp(min=1.0)
    centre = (place + 0.5) * scale
    first = (centre - support + 0.5).floor_().clamp_(min=0.0)
    taps = torch.arange(math.ceil(2.0 * max(1.0, longest / size)), device=start.device, dtype=torch.float32)
    position = first + taps[:, None]
    last = extent[:, None, None] - 1.0
    weight = (position + 0.5 - centre).abs_().div_(support).neg_().add_(1.0).clamp_(min=0.0).mul_(position <= last)
    index = torch.minimum(position, last).add_(start[:, None, None]).long()
    return Taps(index, weight.div_(weight.sum(dim=1, keepdim=True)))


def _resample_rows(planes: Tensor, taps: Taps) -> Tensor:
    """Weighted sums of rows: uint8 (n, C, R, L) -> float32 (n, C, size, L)."""
    count, channels, rows, length = planes.shape
    flat = planes.view(-1, length)
    first = torch.arange(0, len(flat), rows, device=planes.device).view(count, 1, channels, 1)
    # (taps, n, C, size): a tap's rows, one after the other.
    index = (taps.index[:, :, None] + first).transpose(0, 1).reshape(taps.index.shape[1], -1)
    weights = taps.weight[:, :, None, :, None].unbind(1)
    total = torch.empty(0, device=planes.device)
    for number, weight in enumerate(weights):
        tap = flat.index_select(0, index[number]).view(count, channels, -1, length).float()
        total = total.addcmul_(tap, weight) if number else tap.mul_(weight)
    return total
