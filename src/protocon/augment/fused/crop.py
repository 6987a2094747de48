"""Resized crops: `protocon.augment.resized_crop.resample`, one image at a time, reading the crop's rows only."""

import numpy as np
from torch import Tensor

from protocon.augment.fused.kernels import kernel, share_out
from protocon.augment.resized_crop import Taps

Array = np.ndarray


@kernel
def resample_image(
    image: Array, columns: Array, across: Array, rows: Array, down: Array, narrow: Array, view: Array
) -> None:
    """Weighted sums of columns, rounded to 8 bits, then of rows.

    Args:
        image: uint8 (C, H, W).
        columns: int64 (taps, size), which columns make up each of the view's.
        across: float32 (taps, size), their weights.
        rows: int64 (taps, size), perhaps of another number of taps.
        down: float32 (taps, size), adding up to 1/255.
        narrow: uint8 (C, H, size), space to work in.
        view: float32 (C, size, size), the result, in [0, 1].
    """
    channels, _, _ = image.shape
    taps, size = columns.shape
    first, last = rows.min(), rows.max()
    level = np.empty(size, np.float32)
    for channel in range(channels):
        for y in range(first, last + 1):
            source = image[channel, y]
            for x in range(size):
                level[x] = across[0, x] * np.float32(source[columns[0, x]])
            for tap in range(1, taps):
                for x in range(size):
                    level[x] += across[tap, x] * np.float32(source[columns[tap, x]])
            target = narrow[channel, y]
            for x in range(size):
                target[x] = np.uint8(np.int32(level[x] + np.float32(0.5)))
        for y in range(size):
            out = view[channel, y]
            source = narrow[channel, rows[0, y]]
            weight = down[0, y]
            for x in range(size):
                out[x] = np.float32(source[x]) * weight
            for tap in range(1, len(rows)):
                weight = down[tap, y]
                if weight != 0:
                    source = narrow[channel, rows[tap, y]]
                    for x in range(size):
                        out[x] += np.float32(source[x]) * weight
            for x in range(size):
                out[x] = min(out[x], np.float32(1.0))


@kernel
def interleave(view: Array, out: Array) -> None:
    """Planes (C, h, w) into channels last (h, w, C)."""
    channels, height, _ = view.shape
    for y in range(height):
        row = out[y]
        for channel in range(channels):
            plane = view[channel, y]
            for x in range(len(plane)):
                row[x, channel] = plane[x]


@kernel
def crop_images(
    images: Array, columns: Array, across: Array, rows: Array, down: Array, out: Array, start: int, stop: int
) -> None:
    """Views of images start … stop − 1 into float32 `out` (n, size, size, C)."""
    _, channels, height, _ = images.shape
    size = out.shape[1]
    narrow = np.empty((channels, height, size), np.uint8)
    view = np.empty((channels, size, size), np.float32)
    for i in range(start, stop):
        resample_image(images[i], columns[i], across[i], rows[i], down[i], narrow, view)
        interleave(view, out[i])


def tap_arrays(columns: Taps, rows: Taps) -> tuple[Array, Array, Array, Array]:
    """What the kernels take: indices and weights of columns and of rows, the latter as shares of 255."""
    return (
        columns.index.contiguous().numpy(),
        columns.weight.contiguous().numpy(),
        rows.index.contiguous().numpy(),
        (rows.weight * (1.0 / 255.0)).contiguous().numpy(),
    )


def crops(images: Tensor, columns: Taps, rows: Taps, out: Tensor) -> None:
    """Resized crops of uint8 images (n, C, H, W) into float32 `out` (n, size, size, C).

    Args:
        images: as stored.
        columns: source columns of every output column, with their weights.
        rows: likewise for rows.
        out: receives the crops.
    """
    pixels, target, taps = images.contiguous().numpy(), out.numpy(), tap_arrays(columns, rows)
    share_out(lambda start, stop: crop_images(pixels, *taps, target, start, stop), len(images))
