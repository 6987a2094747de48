"""SimCLR's view: crop, colour jitter, grey and blur, one image at a time while it is in the cache.

The same operations as `protocon.augment.jitter` and `protocon.augment.blur`, which explain the formulas.
"""

from typing import Any

import numpy as np
from torch import Tensor

from protocon.augment.fused.crop import interleave, resample_image, tap_arrays
from protocon.augment.fused.kernels import Scalar, kernel, share_out
from protocon.augment.resized_crop import Taps

Array = np.ndarray
_SUM_STEPS = 4096.0


@kernel
def clamped(value: Scalar) -> Scalar:
    """Into [0, 1]."""
    return min(max(value, np.float32(0.0)), np.float32(1.0))


@kernel
def luma(red: Scalar, green: Scalar, blue: Scalar) -> Scalar:
    """Grey level (ITU-R 601-2)."""
    return np.float32(0.299) * red + np.float32(0.587) * green + np.float32(0.114) * blue


@kernel
def mean_luma(view: Array) -> Scalar:
    """Mean grey level of an image (C, P), summed as integers, so the order does not matter."""
    pixels = view.shape[1]
    total = np.int64(0)
    steps = np.float32(_SUM_STEPS)
    for start in range(0, pixels, 4096):
        stop = min(start + 4096, pixels)
        part = np.int32(0)
        if view.shape[0] == 1:
            grey = view[0, start:stop]
            for i in range(stop - start):
                part += np.int32(grey[i] * steps + np.float32(0.5))
        else:
            red, green, blue = view[0, start:stop], view[1, start:stop], view[2, start:stop]
            for i in range(stop - start):
                part += np.int32(luma(red[i], green[i], blue[i]) * steps + np.float32(0.5))
        total += part
    return np.float32(total / (_SUM_STEPS * pixels))


@kernel
def mix_constant(view: Array, factor: Scalar, constant: Scalar) -> None:
    """Brightness and contrast: factor · image + constant, clamped."""
    for channel in range(view.shape[0]):
        plane = view[channel]
        for i in range(len(plane)):
            plane[i] = clamped(plane[i] * factor + constant)


@kernel
def saturate(view: Array, factor: Scalar) -> None:
    """Saturation: factor · image + (1 − factor) · luma, clamped."""
    rest = np.float32(1.0) - factor
    red, green, blue = view[0], view[1], view[2]
    for i in range(len(red)):
        grey = luma(red[i], green[i], blue[i]) * rest
        red[i] = clamped(red[i] * factor + grey)
        green[i] = clamped(green[i] * factor + grey)
        blue[i] = clamped(blue[i] * factor + grey)


@kernel
def ramp(hue: Scalar, centre: Scalar) -> Scalar:
    """clamp(|hue − centre|, 1/6, 2/6)."""
    return min(max(abs(hue - centre), np.float32(1.0 / 6.0)), np.float32(2.0 / 6.0))


@kernel
def turn_hue(view: Array, shift: Scalar) -> None:
    """Turn each pixel's hue by `shift` turns, as `protocon.augment.jitter.shift_hue`."""
    red, green, blue = view[0], view[1], view[2]
    offset = np.float32(1.0) + shift
    for i in range(len(red)):
        r, g, b = red[i], green[i], blue[i]
        high = max(r, g, b)
        low = min(r, g, b)
        chroma = high - low
        six = max(chroma * np.float32(6.0), np.float32(1e-8))
        of_green = (b - r) + np.float32(2.0) * chroma
        of_blue = (r - g) + np.float32(4.0) * chroma
        sector = of_green if g == high else of_blue
        sector = (g - b) if r == high else sector
        hue = sector / six + offset
        hue = hue - np.floor(hue)
        red[i] = clamped(low - chroma + six * ramp(hue, np.float32(3.0 / 6.0)))
        green[i] = clamped(high + chroma - six * ramp(hue, np.float32(2.0 / 6.0)))
        blue[i] = clamped(high + chroma - six * ramp(hue, np.float32(4.0 / 6.0)))


@kernel
def make_grey(view: Array) -> None:
    """Every channel becomes the luma."""
    red, green, blue = view[0], view[1], view[2]
    for i in range(len(red)):
        grey = luma(red[i], green[i], blue[i])
        red[i] = grey
        green[i] = grey
        blue[i] = grey


@kernel
def jitter_image(view: Array, turns: Array, factors: Array) -> None:
    """Brightness (0), contrast (1), saturation (2) and hue (3) of an image (C, P) in the order of `turns`."""
    colour = view.shape[0] == 3
    for kind in turns:
        factor = factors[kind]
        if kind == 0:
            mix_constant(view, factor, np.float32(0.0))
        elif kind == 1:
            mix_constant(view, factor, (np.float32(1.0) - factor) * mean_luma(view))
        elif kind == 2 and colour:
            saturate(view, factor)
        elif kind == 3 and colour:
            turn_hue(view, factor)


@kernel
def reflected(place: int, length: int) -> Scalar:
    """Position in 0 … length − 1 of a position up to a length outside, mirrored at the borders."""
    place = abs(place)
    return length - 1 - abs(length - 1 - place)


@kernel
def blur_image(view: Array, weights: Array, radius: int, spare: Array) -> None:
    """Gaussian of 2 · radius + 1 taps along columns, then rows; weights (radius + 1,) by distance. In place."""
    channels, height, width = view.shape
    padded = np.empty(width + 2 * radius, np.float32)
    for channel in range(channels):
        plane = view[channel]
        for y in range(height):
            out, middle, weight = spare[y], plane[y], weights[0]
            for x in range(width):
                out[x] = middle[x] * weight
            for away in range(1, radius + 1):
                above, below = plane[reflected(y - away, height)], plane[reflected(y + away, height)]
                weight = weights[away]
                for x in range(width):
                    out[x] += (above[x] + below[x]) * weight
        for y in range(height):
            source, out, weight = spare[y], plane[y], weights[0]
            for x in range(radius):
                padded[x] = source[reflected(x - radius, width)]
                padded[radius + width + x] = source[reflected(width + x, width)]
            padded[radius : radius + width] = source
            for x in range(width):
                out[x] = source[x] * weight
            for away in range(1, radius + 1):
                left, right = (
                    padded[radius - away : radius - away + width],
                    padded[radius + away : radius + away + width],
                )
                weight = weights[away]
                for x in range(width):
                    out[x] += (left[x] + right[x]) * weight
            for x in range(width):
                out[x] = clamped(out[x])


@kernel
def simclr_images(
    images: Array,
    columns: Array,
    across: Array,
    rows: Array,
    down: Array,
    jittered: Array,
    turns: Array,
    factors: Array,
    greyed: Array,
    radius: Array,
    weights: Array,
    out: Array,
    start: int,
    stop: int,
) -> None:
    """Views of images start … stop − 1 into float32 `out` (n, size, size, C); the rest as `simclr` takes it."""
    _, channels, height, _ = images.shape
    size = out.shape[1]
    narrow = np.empty((channels, height, size), np.uint8)
    view = np.empty((channels, size, size), np.float32)
    flat = view.reshape(channels, size * size)
    spare = np.empty((size, size), np.float32)
    for i in range(start, stop):
        resample_image(images[i], columns[i], across[i], rows[i], down[i], narrow, view)
        if jittered[i]:
            jitter_image(flat, turns[i], factors[i])
        if greyed[i] and channels == 3:
            make_grey(flat)
        if radius[i] > 0:
            blur_image(view, weights[i], radius[i], spare)
        interleave(view, out[i])


def simclr(
    images: Tensor,
    taps: tuple[Taps, Taps],
    out: Tensor,
    *,
    jittered: Tensor,
    turns: Tensor,
    factors: Tensor,
    greyed: Tensor,
    radius: Tensor,
    weights: Tensor,
) -> None:
    """SimCLR views of uint8 images (n, C, H, W) into float32 `out` (n, size, size, C).

    Args:
        images: as stored.
        taps: columns and rows of the crops.
        out: where the views go.
        jittered: bool (n,).
        turns: int64 (n, 4), the order of the adjustments.
        factors: float32 (n, 4).
        greyed: bool (n,).
        radius: int64 (n,), of the blur; 0 leaves the image sharp.
        weights: float32 (n, longest radius + 1), of the blur's taps by distance.
    """
    columns = (jittered, turns, factors, greyed, radius, weights)
    arguments: tuple[Any, ...] = (
        images.contiguous().numpy(),
        *tap_arrays(*taps),
        *(c.contiguous().numpy() for c in columns),
        out.numpy(),
    )
    share_out(lambda start, stop: simclr_images(*(*arguments, start, stop)), len(images))
