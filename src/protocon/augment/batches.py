"""What every image view shares: input checks, blocks that fit the cache, grouping, and the output format."""

from collections.abc import Callable, Iterator
from typing import Protocol

import torch
from torch import Tensor

from protocon.errors import DataError

PIXEL_BLOCK = 1 << 21
"""Pixels handled at once as uint8 (40 images of 224 px): many images share one call's overhead."""
FLOAT_BLOCK = 1 << 19
"""Pixels handled at once as float32 (10 images of 224 px): temporaries stay in cache and are not remapped."""


class View(Protocol):
    """Images (B, C, H, W) uint8 and their keys (B,) int64 -> float32 in [0, 1], (B, C, h, w) channels_last."""

    def __call__(self, images: Tensor, keys: Tensor) -> Tensor:
        """Each image's view; a pure function of that image and that key."""
        ...


class PixelView(View, Protocol):
    """A view that can also stop at 8-bit pixels, for operations that are defined on those."""

    def pixels(self, images: Tensor, keys: Tensor) -> Tensor:
        """The view as uint8 (B, C, h, w), contiguous, in memory of its own."""
        ...


def check_images(images: Tensor, keys: Tensor) -> None:
    """Raise `DataError` unless these are uint8 images of 1 or 3 channels with one int64 key each."""
    if images.dtype != torch.uint8 or images.dim() != 4 or images.shape[1] not in (1, 3):
        raise DataError(
            f"An image view takes uint8 images (B, C, H, W) with C = 1 or 3; got {images.dtype} of shape "
            f"{tuple(images.shape)}. Pass the pixels as stored, before any normalisation."
        )
    if keys.dtype != torch.int64 or keys.shape != images.shape[:1]:
        raise DataError(
            f"A view takes one int64 key per image, shape ({images.shape[0]},); got {keys.dtype} of shape "
            f"{tuple(keys.shape)}. Derive keys with protocon.draws.fold."
        )


def blocks(count: int, pixels: int, limit: int) -> Iterator[slice]:
    """Slices of range(count), each of at most `limit` pixels (at least one image of `pixels`)."""
    step = max(1, limit // max(1, pixels))
    return (slice(start, min(start + step, count)) for start in range(0, count, step))


def in_blocks(
    images: Tensor,
    keys: Tensor,
    *,
    size: tuple[int, int],
    limit: int,
    make: Callable[[Tensor, Tensor, Tensor], None],
) -> Tensor:
    """Allocate the view and let `make(images, keys, out)` fill it block by block.

    `out` is the block's part of the view with the channels last in shape as well: (n, h, w, C), contiguous.
    Nothing of an image's view depends on which block it falls into.
    """
    check_images(images, keys)
    count, channels, height, width = images.shape
    view = torch.empty((count, *size, channels), dtype=torch.float32, device=images.device)
    pixels = max(height * width, size[0] * size[1])
    for rows in blocks(count, pixels, limit):
        make(images[rows].contiguous(), keys[rows], view[rows])
    return view.permute(0, 3, 1, 2)


def write_planes(planes: Tensor, out: Tensor) -> None:
    """Copy (n, C, h, w) into (n, h, w, C), channel by channel: three times faster than one permuted copy."""
    for channel in range(planes.shape[1]):
        out[..., channel].copy_(planes[:, channel])


def write_pixels(pixels: Tensor, out: Tensor) -> None:
    """Write uint8 (n, C, h, w) into `out` (n, h, w, C) as float32 in [0, 1]."""
    # Channels are interleaved while they are bytes: a quarter of the memory that floats would move.
    for rows in blocks(pixels.shape[0], pixels.shape[2] * pixels.shape[3], FLOAT_BLOCK):
        out[rows].copy_(torch.stack(pixels[rows].unbind(1), dim=-1)).mul_(1.0 / 255.0)


def sort_groups(groups: Tensor, count: int) -> tuple[Tensor, list[int]]:
    """Sort rows by their group, (n,) int64 in -1 … count-1: the order (n,), and the count + 1 sizes from group -1 on.

    One sort and one transfer of the sizes, however many groups: on a GPU each `nonzero` would wait for it.
    """
    order = torch.sort(groups, stable=True).indices
    sizes = (groups[:, None] == torch.arange(-1, count, device=groups.device)).sum(dim=0)
    return order, sizes.tolist()
