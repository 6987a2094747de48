"""Resized crops of a batch, each image with its own box: PIL's antialiased bilinear resize, separable.

`Image.crop(box).resize(size, BILINEAR)`: the triangle filter is as wide as the reduction where the image shrinks and
never reads beyond the crop. Columns first, rounded to 8 bits, then rows: PIL's order and rounding.
"""

import math

import torch
from torch import Tensor

from protocon.augment.colour import to_pixels


def resized_crops(images: Tensor, boxes: Tensor, size: int, flip: Tensor | None = None) -> Tensor:
    """Cut `boxes` out of the images and resize them to size × size.

    Args:
        images: uint8 (n, C, H, W).
        boxes: (n, 4) whole float32 numbers: top, left, height, width, inside the image.
        size: side of the result.
        flip: bool (n,), which results are mirrored left to right.

    Returns:
        float32 (n, C, size, size) in 0 … 255, not rounded.
    """
    height, width = images.shape[2:]
    top, left, box_height, box_width = boxes.unbind(1)
    # Resampling takes whole rows, which are contiguous; the image is turned so that columns are rows first.
    columns = _taps(left, box_width, size, longest=width, flip=flip)
    turned = _resample_rows(images.transpose(2, 3).contiguous(), *columns)
    narrow = to_pixels(turned.add_(0.5)).transpose(2, 3).contiguous()
    return _resample_rows(narrow, *_taps(top, box_height, size, longest=height, flip=None))


def _taps(start: Tensor, extent: Tensor, size: int, *, longest: int, flip: Tensor | None) -> tuple[Tensor, Tensor]:
    """Which source rows make each output row, and their weights: int64 and float32 (n, size, taps).

    The number of taps is that of the largest possible crop, `longest`, so it does not depend on the batch; surplus
    taps weigh 0.
    """
    scale = (extent / size)[:, None]
    support = scale.clamp(min=1.0)
    centre = (torch.arange(size, device=start.device) + 0.5) * scale
    first = (centre - support + 0.5).floor().clamp_(min=0.0)
    last = torch.minimum((centre + support + 0.5).floor(), extent[:, None])
    taps = torch.arange(math.ceil(2.0 * max(1.0, longest / size)), device=start.device)
    position = first[:, :, None] + taps
    weight = (1.0 - (position + 0.5 - centre[:, :, None]).abs() / support[:, :, None]).clamp_(min=0.0)
    weight = weight * (position < last[:, :, None])
    weight = weight / weight.sum(dim=2, keepdim=True)
    index = (torch.minimum(position, extent[:, None, None] - 1.0) + start[:, None, None]).long()
    if flip is not None:
        mirrored = flip[:, None, None]
        index = torch.where(mirrored, index.flip(1), index)
        weight = torch.where(mirrored, weight.flip(1), weight)
    return index, weight


def _resample_rows(planes: Tensor, index: Tensor, weight: Tensor) -> Tensor:
    """Weighted sums of rows: planes uint8 (n, C, R, L), index and weight (n, size, taps) -> float32 (n, C, size, L)."""
    count, channels, rows, length = planes.shape
    size, taps = index.shape[1:]
    first = torch.arange(count * channels, device=planes.device).view(count, channels, 1) * rows
    flat = planes.view(-1, length)

    def tap(number: int) -> Tensor:
        chosen = flat.index_select(0, (first + index[:, None, :, number]).view(-1))
        return chosen.view(count, channels, size, length).float()

    total = tap(0).mul_(weight[:, None, :, 0, None])
    for number in range(1, taps):
        total.addcmul_(tap(number), weight[:, None, :, number, None])
    return total
