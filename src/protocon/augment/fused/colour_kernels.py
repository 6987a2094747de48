"""RandAugment's colour operations on one uint8 image (C, H, W), in place: `protocon.augment.colour` level for level."""

import numpy as np

from protocon.augment.fused.kernels import Scalar, kernel

Array = np.ndarray


@kernel
def level_of(value: Scalar) -> Scalar:
    """The fraction of a level dropped, as PIL does."""
    return np.uint8(np.int32(min(max(value, np.float32(0.0)), np.float32(255.0))))


@kernel
def grey_level(red: Scalar, green: Scalar, blue: Scalar) -> Scalar:
    """ITU-R 601-2 in 16 bits, as of `Image.convert("L")`."""
    return (np.int32(red) * 19595 + np.int32(green) * 38470 + np.int32(blue) * 7471 + 32768) >> 16


@kernel
def blend(degenerate: Scalar, level: Scalar, factor: Scalar) -> Scalar:
    """Between a degenerate level (factor 0) and the image's (factor 1)."""
    return level_of((level - degenerate) * factor + degenerate)


@kernel
def autocontrast(image: Array) -> None:
    """Stretch each channel to 0 … 255; a flat one stays."""
    for channel in range(len(image)):
        plane = image[channel].ravel()
        low, high = plane[0], plane[0]
        for i in range(len(plane)):
            low = min(low, plane[i])
            high = max(high, plane[i])
        if low < high:
            least, span = np.float32(low), np.float32(high) - np.float32(low)
            for i in range(len(plane)):
                plane[i] = level_of((np.float32(plane[i]) - least) * np.float32(255.0) / span)


@kernel
def brightness(image: Array, factor: Scalar) -> None:
    """Darken towards black."""
    flat = image.ravel()
    for i in range(len(flat)):
        flat[i] = level_of(np.float32(flat[i]) * factor)


@kernel
def desaturate(image: Array, factor: Scalar) -> None:
    """Towards grey; one channel is grey already."""
    if len(image) == 3:
        red, green, blue = image[0].ravel(), image[1].ravel(), image[2].ravel()
        for i in range(len(red)):
            grey = np.float32(grey_level(red[i], green[i], blue[i]))
            red[i] = blend(grey, np.float32(red[i]), factor)
            green[i] = blend(grey, np.float32(green[i]), factor)
            blue[i] = blend(grey, np.float32(blue[i]), factor)


@kernel
def contrast(image: Array, factor: Scalar) -> None:
    """Towards the mean grey level, rounded."""
    count = image[0].size
    total = 0
    if len(image) == 3:
        red, green, blue = image[0].ravel(), image[1].ravel(), image[2].ravel()
        for i in range(count):
            total += grey_level(red[i], green[i], blue[i])
    else:
        for level in image[0].ravel():
            total += level
    mean = np.float32((2 * total + count) // (2 * count))
    flat = image.ravel()
    for i in range(len(flat)):
        flat[i] = blend(mean, np.float32(flat[i]), factor)


@kernel
def equalize(image: Array) -> None:
    """Spread each channel's levels so that they occur about equally often."""
    table = np.empty(256, np.uint8)
    for channel in range(len(image)):
        plane = image[channel].ravel()
        histogram = np.zeros(256, np.int64)
        for level in plane:
            histogram[level] += 1
        brightest = 255
        while histogram[brightest] == 0:
            brightest -= 1
        step = (len(plane) - histogram[brightest]) // 255
        if step > 0:
            below = 0
            for level in range(256):
                table[level] = min((step // 2 + below) // step, 255)
                below += histogram[level]
            for i in range(len(plane)):
                plane[i] = table[plane[i]]


@kernel
def posterize(image: Array, bits: Scalar) -> None:
    """Keep the leading ⌊bits⌋ bits."""
    kept = min(max(int(np.floor(bits)), 1), 8)
    mask = np.uint8(256 - (1 << (8 - kept)))
    flat = image.ravel()
    for i in range(len(flat)):
        flat[i] &= mask


@kernel
def solarize(image: Array, share: Scalar) -> None:
    """Invert every level at or above share · 255."""
    threshold = int(np.ceil(share * np.float32(255.0)))
    flat = image.ravel()
    for i in range(len(flat)):
        flat[i] = flat[i] if flat[i] < threshold else 255 - flat[i]


@kernel
def sharpness(image: Array, factor: Scalar, result: Array) -> None:
    """Blur by PIL's SMOOTH filter, into `result`; the border stays."""
    channels, height, width = image.shape
    result[:] = image
    if min(height, width) >= 3:
        for channel in range(channels):
            for y in range(1, height - 1):
                above, here, below = image[channel, y - 1], image[channel, y], image[channel, y + 1]
                target = result[channel, y]
                columns = np.empty(width, np.int32)
                for x in range(width):
                    columns[x] = np.int32(above[x]) + np.int32(here[x]) + np.int32(below[x])
                left, middle, right = columns[:-2], columns[1:-1], columns[2:]
                centre, out = here[1:-1], target[1:-1]
                for x in range(width - 2):
                    total = np.float32(left[x] + middle[x] + right[x] + 4 * np.int32(centre[x]))
                    smooth = np.floor(total * np.float32(1.0 / 13.0) + np.float32(0.5))
                    out[x] = blend(smooth, np.float32(centre[x]), factor)
