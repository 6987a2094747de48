"""Geometric operations on uint8 batches, pixel for pixel as PIL's: rotate, shear, translate.

Images are (n, C, H, W) uint8; parameters are float32, one row per image; results are new uint8 images of the same
shape. The filter is *nearest*, with black outside: the default of `Image.rotate` and `Image.transform`, which
FixMatch's published results rest on. It also moves pixels without mixing them, so a chain of operations loses no
sharpness, and moves of whole rows become plain copies of memory.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

_ONE = 1 << 16  # PIL counts pixel coordinates in 16.16 fixed point


def _fixed(x: Tensor) -> Tensor:
    return (x * _ONE + 0.5).floor_().to(torch.int32)


def turn(images: Tensor, parameters: Tensor) -> Tensor:
    """Rotate and shear vertically; parameters (n, 2): degrees, slope.

    Degrees turn anticlockwise about the image's centre, as `Image.rotate(degrees)`. The slope takes pixel (x, y) from
    (x, y + slope · x), as `Image.transform(AFFINE, (1, 0, 0, slope, 1, 0))`.
    """
    return affine(images, turn_matrix(parameters, *images.shape[2:]))


def turn_matrix(parameters: Tensor, height: int, width: int) -> Tensor:
    """The matrices (n, 6) of `turn`.

    Args:
        parameters: degrees and slope, (n, 2).
        height: of the images.
        width: of the images.
    """
    degrees, slope = parameters.unbind(1)
    angle = torch.deg2rad(degrees)
    cos, sin = torch.cos(angle), torch.sin(angle)
    # The matrix takes an output position to where its pixel comes from; y points down.
    x0, y0 = width / 2.0, height / 2.0
    across = x0 - cos * x0 + sin * y0
    down = y0 - sin * x0 - cos * y0
    return torch.stack([cos, -sin, across, sin + slope, cos, down], dim=1)


def slide(images: Tensor, parameters: Tensor) -> Tensor:
    """Shear horizontally and translate; parameters (n, 3): slope, share of the width, share of the height.

    Takes pixel (x, y) from (x + slope · y + share · W, y + share · H), as `Image.transform(AFFINE, …)` with
    (1, slope, 0, 0, 1, 0), (1, 0, share · W, 0, 1, 0) or (1, 0, 0, 0, 1, share · H).

    Each row is stored behind a row of zeros, so that a window of W pixels, started anywhere from -W to +W around it,
    reads the moved row with its black border: one block copy per row, no index per pixel.
    """
    count, channels, height, width = images.shape
    start, slope, down = fixed_slide(parameters, height, width).int().unsqueeze(2).unbind(1)
    y = torch.arange(height, device=images.device, dtype=torch.int32)
    dx = (slope * y).add_(start).bitwise_right_shift_(16).clamp_(-width, width)
    rows = y + down
    inside = rows.clamp(0, height - 1)
    # A row from outside the image is all border: the zeros in front of some row.
    dx = torch.where(rows == inside, dx + width, 0)
    padded = images.new_zeros(count * channels * height + 1, 2 * width)
    padded[:-1, width:] = images.reshape(-1, width)
    first = torch.arange(0, count * channels * height, height, device=images.device).view(count, channels, 1)
    return windows(padded, ((first + inside[:, None]) * (2 * width)).add_(dx[:, None]), width)


def fixed_slide(parameters: Tensor, height: int, width: int) -> Tensor:
    """Parameters of `slide` as whole numbers, int64 (n, 3): start and slope in fixed point, rows to move down.

    Args:
        parameters: slope, share of the width and share of the height, (n, 3).
        height: of the images.
        width: of the images.
    """
    slope, across, down = parameters.unbind(1)
    start, slope = _fixed(torch.stack([0.5 * slope + across * width + 0.5, slope]))
    return torch.stack([start, slope, (down * height + 0.5).floor_().int()], dim=1).long()


def windows(rows: Tensor, starts: Tensor, width: int) -> Tensor:
    """Copy `width` consecutive elements from each of `starts`, positions in the flattened contiguous `rows`.

    Args:
        rows: contiguous tensor of any shape.
        starts: int64 positions, of any shape.
        width: elements to copy.
    """
    return rows.view(-1).unfold(0, width, 1).index_select(0, starts.reshape(-1)).view(*starts.shape, width)


def affine(images: Tensor, matrix: Tensor) -> Tensor:
    """Take pixel (x, y) from (ax + by + c, dx + ey + f), matrix (n, 6) float32, as `Image.transform(AFFINE, …)`.

    Positions are of pixel centres and in PIL's fixed point, so the chosen pixels are PIL's.
    """
    count, channels, height, width = images.shape
    numbers = fixed_affine(matrix).int()
    start, slopes = numbers[:, :2, None, None], numbers[:, 2:].view(count, 2, 2, 1, 1)
    x = torch.arange(width, device=images.device, dtype=torch.int32)
    y = torch.arange(height, device=images.device, dtype=torch.int32)[:, None]
    # Coordinates outside are clamped onto the frame.
    source = ((slopes[:, :, 1] * y + start) + slopes[:, :, 0] * x).bitwise_right_shift_(16)
    across, down = source[:, 0].clamp_(0, width + 1), source[:, 1].clamp_(0, height + 1)
    index = across.add_(down, alpha=width + 2).view(count, -1).long()
    # The bytes of a pixel travel as one 32-bit word: one look-up a pixel instead of one a channel.
    bands = images.unbind(1)
    words = images[:, 0] if channels == 1 else torch.stack([*bands, bands[0]], dim=-1).view(torch.int32)[..., 0]
    moved = F.pad(words, (1, 1, 1, 1)).view(count, -1).gather(1, index).view(count, height, width)
    if channels == 1:
        return moved.unsqueeze(1)
    return torch.stack(moved.unsqueeze(-1).view(torch.uint8).unbind(-1)[:channels], dim=1)


def fixed_affine(matrix: Tensor) -> Tensor:
    """A matrix (n, 6) in fixed point, int64 (n, 6): where (0, 0) comes from, x and y, and the slopes of x, then y.

    One pixel further, where a black frame of one pixel shifts the image.
    """
    rows = matrix.view(len(matrix), 2, 3)
    half = torch.tensor([0.5, 0.5, 1.0], device=matrix.device)
    start = _fixed((rows * half).sum(dim=2)) + _ONE
    return torch.cat([start, _fixed(rows[:, :, :2]).flatten(1)], dim=1).long()
