"""What every image view shares: input checks, blocks that fit the cache, grouping, and the output format."""

from collections.abc import Callable, Iterator
from typing import Literal, Protocol

import torch
from torch import Tensor

from protocon.errors import DataError

# Pixels handled at once. More share the overhead of a call; fewer leave temporary tensors in the cache.
PIXEL_BLOCK = 1 << 22
"""Where images are handled in small groups anyway (80 images of 224 px)."""
MOVE_BLOCK = 1 << 19
"""Where bytes are moved (10 images of 224 px)."""
FLOAT_BLOCK = 1 << 18
"""Where they are floats (5 images of 224 px)."""


Engine = Literal["torch", "numba"]
"""What computes a view: torch on any device, or the kernels of `protocon.augment.fused` on a CPU."""


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

    def output_size(self, height: int, width: int) -> tuple[int, int]:
        """Height and width of the view of an image."""
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
            f"{tuple(keys.shape)}. Derive keys with protocon.base.draws.fold."
        )


def blocks(count: int, pixels: int, limit: int) -> Iterator[slice]:
    """Slices of range(count), each of at most `limit` pixels, but at least one image.

    Args:
        count: images.
        pixels: of one image.
        limit: pixels handled at once.
    """
    step = max(1, limit // max(1, pixels))
    return (slice(start, min(start + step, count)) for start in range(0, count, step))


def runs_fused(engine: Engine, images: Tensor) -> bool:
    """Whether a view of these images is made by the compiled kernels."""
    return engine == "numba" and images.device.type == "cpu"


def in_blocks(
    images: Tensor, *, size: tuple[int, int], limit: int, make: Callable[[Tensor, slice, Tensor], None]
) -> Tensor:
    """Allocate the view (B, C, *size), and let `make(images, rows, out)` fill it block by block.

    `make` gets a block's images, which rows of the batch they are, and where their views go: `out` with the channels
    last in shape as well, (n, h, w, C), contiguous. An image's view must not depend on its block.

    Args:
        images: uint8 (B, C, H, W).
        size: height and width of the view.
        limit: pixels handled at once.
        make: fills `out` for a block of images.
    """
    count, channels, height, width = images.shape
    view = torch.empty((count, *size, channels), dtype=torch.float32, device=images.device)
    for rows in blocks(count, max(height * width, size[0] * size[1]), limit):
        make(images[rows].contiguous(), rows, view[rows])
    return view.permute(0, 3, 1, 2)


def write_planes(planes: Tensor, out: Tensor) -> None:
    """Copy (n, C, h, w) into float32 (n, h, w, C), channel by channel: three times faster than one permuted copy."""
    for channel in range(planes.shape[1]):
        out[..., channel].copy_(planes[:, channel])


def write_pixels(pixels: Tensor, out: Tensor) -> None:
    """Write uint8 (n, C, h, w) into `out` (n, h, w, C) as float32 in [0, 1]."""
    for rows in blocks(pixels.shape[0], pixels.shape[2] * pixels.shape[3], FLOAT_BLOCK):
        write_planes(pixels[rows], out[rows])
        out[rows].mul_(1.0 / 255.0)


def sort_groups(groups: Tensor, count: int) -> tuple[Tensor, list[int]]:
    """Sort rows by their group, (n,) int64 in -1 … count-1: the order (n,), and the count + 1 sizes from group -1 on.

    One sort and one transfer of the sizes, however many groups: on a GPU each `nonzero` would wait for it.
    """
    order = torch.sort(groups, stable=True).indices
    sizes = (groups[:, None] == torch.arange(-1, count, device=groups.device)).sum(dim=0)
    return order, sizes.tolist()
