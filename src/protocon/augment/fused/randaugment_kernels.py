"""FixMatch's weak and strong views, one image at a time, exactly as `protocon.augment.views` and `randaugment`."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from protocon.augment import colour as tensor_colour
from protocon.augment import geometry
from protocon.augment.fused import colour_kernels as colour
from protocon.augment.fused.kernels import kernel, share_out

Array = np.ndarray

_NONE = -1
_AUTOCONTRAST, _BRIGHTNESS, _COLOUR, _CONTRAST, _EQUALIZE, _POSTERIZE, _SHARPNESS, _SOLARIZE, _TURN, _SLIDE = range(10)

CODES: dict[Callable[[Tensor, Tensor], Tensor], int] = {
    tensor_colour.identity: _NONE,
    tensor_colour.autocontrast: _AUTOCONTRAST,
    tensor_colour.brightness: _BRIGHTNESS,
    tensor_colour.colour: _COLOUR,
    tensor_colour.contrast: _CONTRAST,
    tensor_colour.equalize: _EQUALIZE,
    tensor_colour.posterize: _POSTERIZE,
    tensor_colour.sharpness: _SHARPNESS,
    tensor_colour.solarize: _SOLARIZE,
    geometry.turn: _TURN,
    geometry.slide: _SLIDE,
}
"""What the kernels call the functions of the pool."""


@kernel
def reflected(place: int, length: int) -> int:
    """A position mirrored at both ends of 0 … length − 1 as often as it takes, ends not repeated."""
    if length == 1:
        return 0
    place = place % (2 * length - 2)
    return place if place < length else 2 * length - 2 - place


@kernel
def move_image(image: Array, across: int, down: int, result: Array) -> None:
    """Take pixel (x, y) from (x + across, y + down), reflected."""
    channels, height, width = image.shape
    columns = np.empty(width, np.int64)
    for x in range(width):
        columns[x] = reflected(x + across, width)
    for channel in range(channels):
        for y in range(height):
            source, target = image[channel, reflected(y + down, height)], result[channel, y]
            for x in range(width):
                target[x] = source[columns[x]]


@kernel
def affine(image: Array, numbers: Array, result: Array) -> None:
    """Nearest pixel in PIL's fixed point, black outside; numbers as `geometry.fixed_affine` makes them."""
    channels, height, width = image.shape
    start_x, start_y, xx, xy, yx, yy = numbers
    for y in range(height):
        first_x, first_y = start_x + xy * y, start_y + yy * y
        for x in range(width):
            # One pixel back: there is no frame around the image here.
            from_x, from_y = ((first_x + xx * x) >> 16) - 1, ((first_y + yx * x) >> 16) - 1
            if 0 <= from_x < width and 0 <= from_y < height:
                for channel in range(channels):
                    result[channel, y, x] = image[channel, from_y, from_x]
            else:
                for channel in range(channels):
                    result[channel, y, x] = 0


@kernel
def slide(image: Array, numbers: Array, result: Array) -> None:
    """Rows moved by whole pixels, black outside; numbers as `geometry.fixed_slide` makes them."""
    channels, height, width = image.shape
    start, slope, down = numbers[0], numbers[1], numbers[2]
    for channel in range(channels):
        for y in range(height):
            target, row = result[channel, y], y + down
            target[:] = 0
            if 0 <= row < height:
                across = min(max((slope * y + start) >> 16, -width), width)
                source = image[channel, row]
                if across >= 0:
                    target[: width - across] = source[across:]
                else:
                    target[-across:] = source[: width + across]


@kernel
def cut_out(image: Array, top: int, left: int, side: int) -> None:
    """Paint a mid-grey square, as far as it is inside."""
    channels, height, width = image.shape
    for channel in range(channels):
        for y in range(max(top, 0), min(top + side, height)):
            image[channel, y, max(left, 0) : max(min(left + side, width), 0)] = 127


@kernel
def write(image: Array, out: Array) -> None:
    """Levels (C, h, w) as float32 in [0, 1], channels last."""
    channels, height, width = image.shape
    for y in range(height):
        row = out[y]
        for channel in range(channels):
            plane = image[channel, y]
            for x in range(width):
                row[x, channel] = np.float32(plane[x]) * np.float32(1.0 / 255.0)


@kernel
def operate(image: Array, code: int, magnitude: float, numbers: Array, spare: Array) -> bool:
    """Apply one operation, in place or into `spare`; True if the result is in `spare`."""
    if code == _AUTOCONTRAST:
        colour.autocontrast(image)
    elif code == _BRIGHTNESS:
        colour.brightness(image, magnitude)
    elif code == _COLOUR:
        colour.desaturate(image, magnitude)
    elif code == _CONTRAST:
        colour.contrast(image, magnitude)
    elif code == _EQUALIZE:
        colour.equalize(image)
    elif code == _POSTERIZE:
        colour.posterize(image, magnitude)
    elif code == _SOLARIZE:
        colour.solarize(image, magnitude)
    elif code == _SHARPNESS:
        colour.sharpness(image, magnitude, spare)
    elif code == _TURN:
        affine(image, numbers, spare)
    elif code == _SLIDE:
        slide(image, numbers, spare)
    return code in (_SHARPNESS, _TURN, _SLIDE)


@kernel
def move_images(images: Array, moves: Array, out: Array, start: int, stop: int) -> None:
    """Weak views of images start … stop − 1 into float32 `out` (n, H, W, C)."""
    view = np.empty(images.shape[1:], np.uint8)
    for i in range(start, stop):
        move_image(images[i], moves[i, 0], moves[i, 1], view)
        write(view, out[i])


@kernel
def augment_images(
    images: Array,
    moves: Array,
    codes: Array,
    magnitudes: Array,
    numbers: Array,
    corners: Array,
    side: int,
    out: Array,
    start: int,
    stop: int,
) -> None:
    """Strong views of images start … stop − 1 into float32 `out` (n, H, W, C); the rest as `strong` makes it."""
    view = np.empty(images.shape[1:], np.uint8)
    spare = np.empty(images.shape[1:], np.uint8)
    for i in range(start, stop):
        move_image(images[i], moves[i, 0], moves[i, 1], view)
        for turn in range(codes.shape[1]):
            if operate(view, codes[i, turn], magnitudes[i, turn], numbers[i, turn], spare):
                view, spare = spare, view
        if side > 0:
            cut_out(view, corners[i, 0], corners[i, 1], side)
        write(view, out[i])


def weak(images: Tensor, moves: Tensor, out: Tensor) -> None:
    """Weak views of uint8 images (n, C, H, W), moved by int64 (n, 2) across and down, into `out` (n, H, W, C).

    Args:
        images: as stored.
        moves: how far each view's pixels come from, across and down.
        out: receives the views.
    """
    arguments = (images.contiguous().numpy(), moves.numpy(), out.numpy())
    share_out(lambda start, stop: move_images(*arguments, start, stop), len(images))


def strong(
    images: Tensor,
    moves: Tensor,
    out: Tensor,
    *,
    codes: Tensor,
    parameters: Tensor,
    corners: Tensor,
    side: int,
) -> None:
    """Strong views of uint8 images (n, C, H, W) into float32 `out` (n, H, W, C).

    Args:
        images: as stored.
        moves: int64 (n, 2), across and down.
        out: where the views go.
        codes: int64 (n, ops), of `CODES`.
        parameters: float32 (n, ops, 3), what the functions of the pool take.
        corners: int64 (n, 2), top and left of the grey square.
        side: of that square; 0 paints none.
    """
    height, width = images.shape[2:]
    flat = parameters.reshape(-1, parameters.shape[2])
    turns = geometry.fixed_affine(geometry.turn_matrix(flat[:, :2], height, width))
    slides = torch.zeros_like(turns)
    slides[:, :3] = geometry.fixed_slide(flat[:, :3], height, width)
    numbers = torch.where((codes.reshape(-1) == _TURN)[:, None], turns, slides).view(*codes.shape, 6)
    columns = (moves, codes, parameters[:, :, 0], numbers, corners)
    arguments: tuple[Any, ...] = (
        images.contiguous().numpy(),
        *(column.contiguous().numpy() for column in columns),
        side,
        out.numpy(),
    )
    share_out(lambda start, stop: augment_images(*(*arguments, start, stop)), len(images))
