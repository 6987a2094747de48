"""One image file to one uint8 tensor, whatever kind of image it is.

The centre square is cropped, or the whole picture is squashed into a square, and resized to `size` (bilinear,
antialiased; bicubic where a small image is enlarged more than twice). EXIF rotation is applied; transparency is laid on
white; 16-bit grey is scaled to 8 bits over its whole range; of an animation the first frame counts. Anything else is a
DataError that names the file and the reason.
"""

import os
from functools import cache
from typing import BinaryIO

import numpy as np
import torch
from PIL import Image, UnidentifiedImageError, features
from PIL.JpegImagePlugin import JpegImageFile
from torch import Tensor

from protocon.data.files.file_report import ImageFacts
from protocon.data.files.kinds import heic_is_readable
from protocon.errors import DataError

MAX_PIXELS = 89_478_485  # as Pillow's own warning: 256 MiB of RGB
_LARGEST_JPEG = 12 * MAX_PIXELS
"""Baseline JPEG is decoded at an eighth of its side without ever being held whole; time still bounds it."""
_LARGEST_PROGRESSIVE = 2 * MAX_PIXELS  # its coefficients are held whole: about 3 bytes a pixel

MANY_TIMES = 2
"""Images that are enlarged by a larger factor are enlarged with a bicubic filter."""

# Named, since Pillow would otherwise try every plugin it has, one of which runs Ghostscript.
_FORMATS = ("JPEG", "PNG", "BMP", "GIF", "WEBP", "TIFF", "PPM")


@cache
def _formats() -> tuple[str, ...]:
    """What Pillow may try: AVIF and HEIC where there is something that reads them."""
    found: tuple[str, ...] = _FORMATS
    if heic_is_readable():
        import pillow_heif

        pillow_heif.register_heif_opener()
        found += ("HEIF",)
    return (*found, "AVIF") if features.check("avif") else found


_SIXTEEN_BIT = ("I;16", "I;16L", "I;16B", "I;16N")
_WITH_ALPHA = ("RGBA", "LA", "PA", "RGBa", "La")

_ORIENTATION_TAG = 0x0112
_TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}


def decode_image(
    file: BinaryIO,
    *,
    size: int,
    name: str,
    grey: bool = False,
    squash: bool = False,
    max_pixels: int = MAX_PIXELS,
) -> Tensor:
    """Read an image as uint8 (3, size, size), or (1, size, size) if `grey`.

    Args:
        file: open for reading, at its start.
        size: side of the result in pixels.
        name: what messages call the file.
        grey: one channel (ITU-R 601 luma) instead of three.
        squash: keep the whole picture, whatever its aspect ratio, instead of its centre.
        max_pixels: an image that would need more at once is refused before a pixel of it is decoded.
    """
    return decode_with_facts(file, size=size, name=name, grey=grey, squash=squash, max_pixels=max_pixels)[0]


def decode_with_facts(
    file: BinaryIO,
    *,
    size: int,
    name: str,
    grey: bool = False,
    squash: bool = False,
    max_pixels: int = MAX_PIXELS,
) -> tuple[Tensor, ImageFacts]:
    """The same, with what the file says of itself (dimensions before EXIF rotation).

    Args:
        file: opened for reading bytes.
        size: side of the square that comes out, in pixels.
        name: what messages call the file.
        grey: one channel instead of three.
        squash: keep the whole picture, whatever its aspect ratio, instead of its centre.
        max_pixels: a file that claims more is refused before it is decoded.
    """
    try:
        with _open(file, name) as image:
            width, height = image.size
            facts = ImageFacts(name, width, height, image.mode, image.format or "", _frames(image))
            # JPEG only: decode at 1/2, 1/4 or 1/8 where that leaves twice the pixels we need.
            image.draft(None, (2 * size, 2 * size))
            _refuse_huge(image, facts, max_pixels)
            image.load()
            turn = _turn(image)
            square = _square(_eight_bits(image, name, grey=grey), size, squash=squash)
    except (DataError, MemoryError):
        raise
    except Exception as error:  # Pillow's plugins raise whatever their parsers stumble over
        raise DataError(
            f"{name} cannot be decoded: {error}. The file is damaged or cut short; replace or remove it."
        ) from error
    if turn is not None:
        square = square.transpose(turn)  # turning changes neither the centre nor the whole
    pixels = torch.from_numpy(np.array(square))
    return (pixels[None] if grey else pixels.permute(2, 0, 1).contiguous()), facts


def decode_whole(file: BinaryIO, *, side: int, name: str) -> Image.Image:
    """The whole picture, upright, as RGB, reduced to at most `side` pixels on its longest side; never enlarged.

    Args:
        file: opened for reading bytes.
        side: most pixels on the longest side.
        name: what messages call the file.
    """
    try:
        with _open(file, name) as image:
            facts = ImageFacts(name, *image.size, image.mode, image.format or "")
            image.draft(None, (side, side))
            _refuse_huge(image, facts, MAX_PIXELS)
            image.load()
            turn = _turn(image)
            picture = _eight_bits(image, name, grey=False)
            picture.thumbnail((side, side), Image.Resampling.LANCZOS)
    except (DataError, MemoryError):
        raise
    except Exception as error:
        raise DataError(f"{name} cannot be decoded: {error}. Replace or remove it.") from error
    return picture if turn is None else picture.transpose(turn)


def image_dimensions(file: BinaryIO, *, name: str) -> tuple[int, int]:
    """Width and height as the file's header states them, before EXIF rotation."""
    try:
        with _open(file, name) as image:
            return image.size
    except (DataError, MemoryError):
        raise
    except Exception as error:
        raise DataError(f"{name} cannot be read: {error}. Replace or remove it.") from error


def _open(file: BinaryIO, name: str) -> Image.Image:
    if file.seek(0, os.SEEK_END) == 0:
        raise DataError(f"{name} is an empty file. Replace or remove it.")
    file.seek(0)
    start = file.read(3)
    file.seek(0)
    if start == b"\xff\xd8\xff":
        # Past Pillow's own limit, which counts the pixels that a JPEG has, not those that we decode of it.
        return JpegImageFile(file)
    try:
        return Image.open(file, formats=_formats())
    except UnidentifiedImageError as error:
        raise DataError(f"{name} is not an image that can be read. Expected one of {', '.join(_formats())}.") from error
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise DataError(f"{name} has too many pixels: {str(error).split(',')[0]}. Scale it down.") from error


def _frames(image: Image.Image) -> int:
    try:
        return int(getattr(image, "n_frames", 1))
    except Exception:  # damage behind the first frame, which is the only one that counts
        return 1


def _refuse_huge(image: Image.Image, facts: ImageFacts, max_pixels: int) -> None:
    limit = max_pixels
    if image.width * image.height <= max_pixels and facts.format == "JPEG":
        limit = _LARGEST_PROGRESSIVE if image.info.get("progressive") else _LARGEST_JPEG
    if facts.width * facts.height > limit:
        raise DataError(
            f"{facts.path} has {facts.width} × {facts.height} pixels, more than the limit of {limit:,}. Scale it down."
        )


def _turn(image: Image.Image) -> Image.Transpose | None:
    try:
        return _TURNS.get(image.getexif().get(_ORIENTATION_TAG, 1))
    except Exception:  # unreadable EXIF says nothing about rotation; the pixels are still good
        return None


def _eight_bits(image: Image.Image, name: str, *, grey: bool) -> Image.Image:
    """The same picture as 8-bit RGB or grey without transparency."""
    # Older versions of Pillow open 16-bit PNG and PGM as 32-bit integers.
    if image.mode in _SIXTEEN_BIT or (image.mode == "I" and image.format in ("PNG", "PPM")):
        values = np.asarray(image).astype(np.uint32)
        image = Image.fromarray(((values * 255 + 32767) // 65535).astype(np.uint8))
    elif image.mode in ("I", "F"):
        raise DataError(f"{name} has 32-bit pixels, whose range is not known. Save it with 8 or 16 bits a channel.")
    elif image.mode in _WITH_ALPHA or "transparency" in image.info:
        picture = image.convert("RGBA")
        white = Image.new("RGBA", picture.size, (255, 255, 255, 255))
        image = Image.alpha_composite(white, picture)
    mode = "L" if grey else "RGB"
    return image if image.mode == mode else image.convert(mode)


def much_enlarged(side: int, size: int) -> bool:
    """Whether an image of this side grows so much that a bilinear enlargement blurs it.

    After a bicubic one, an encoder of photographs knows two more of a hundred images of 32 pixels; of images that grow
    less there is no such gain (docs/frozen.md).
    """
    return size > MANY_TIMES * side


def _square(image: Image.Image, size: int, *, squash: bool) -> Image.Image:
    """Centre square or the whole picture, resized: cropping and resizing in one pass."""
    if image.size == (size, size):
        return image
    side = min(image.size)
    left, top = (image.width - side) // 2, (image.height - side) // 2
    box = (0, 0, *image.size) if squash else (left, top, left + side, top + side)
    if side == size and not squash:
        return image.crop(box)
    method = Image.Resampling.BICUBIC if much_enlarged(side, size) else Image.Resampling.BILINEAR
    return image.resize((size, size), method, box=box)
