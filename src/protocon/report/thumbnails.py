"""Small pictures as data URIs: what the network saw, at a few kilobytes each."""

import base64
import io
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image
from torch import Tensor

from protocon.base.threads import one_thread
from protocon.data.imageset import ImageSet
from protocon.errors import ProtoConError

SIDE = 144
"""Longest side in pixels; smaller images stay as they are."""
_SMALL = 40
"""Up to this side PNG is as small as JPEG, and exact."""
_AT_ONCE = 32
"""Pictures that are drawn before their bytes are counted."""


def thumbnails(images: ImageSet, names: Sequence[str], *, budget: int, side: int = SIDE) -> dict[str, str]:
    """A data URI for each name that the set has, in their order until `budget` bytes are used.

    It is empty for an image that cannot be read; names for which the bytes did not suffice are left out.

    Args:
        images: the set.
        names: which of them, most important first.
        budget: bytes for all of them.
        side: of a thumbnail in pixels.
    """
    wanted = set(names)
    places = {name: position for position, name in enumerate(images.ids) if name in wanted}
    order = [name for name in dict.fromkeys(names) if name in places]
    found: dict[str, str] = {}
    used = 0

    def picture(name: str) -> str:
        try:
            return data_uri(images.read(np.array([places[name]]))[0], side=side)
        except (ProtoConError, OSError):
            return ""  # gone or damaged since; the page shows its name alone

    # Each picture on its own thread: Pillow and torch compute without Python's lock.
    with one_thread(), ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
        for start in range(0, len(order), _AT_ONCE):
            part = order[start : start + _AT_ONCE]
            for name, drawn in zip(part, pool.map(picture, part), strict=True):
                if used > budget:
                    return found
                found[name] = drawn
                used += len(drawn)
    return found


def data_uri(pixels: Tensor, *, side: int = SIDE) -> str:
    """A uint8 image (1 or 3, H, W) as PNG, or JPEG where it is larger."""
    rows = _shrunk(pixels, side).permute(1, 2, 0).contiguous().numpy()
    image = Image.fromarray(rows[:, :, 0] if rows.shape[2] == 1 else rows)
    content = io.BytesIO()
    kind = "png" if max(image.size) <= _SMALL else "jpeg"
    image.save(content, format=kind, **({"optimize": True} if kind == "png" else {"quality": 78}))
    return f"data:image/{kind};base64,{base64.b64encode(content.getvalue()).decode()}"


def _shrunk(pixels: Tensor, side: int) -> Tensor:
    """The image with its longest side at most this long. torch takes a fourth of Pillow's time for it."""
    height, width = pixels.shape[1:]
    longest = max(height, width)
    if longest <= side:
        return pixels
    size = [max(1, round(side * length / longest)) for length in (height, width)]
    # Channels of a pixel side by side: torch is twice as fast so, and a picture wants them so.
    image = pixels[None].contiguous(memory_format=torch.channels_last)
    return F.interpolate(image, size=size, mode="bilinear", antialias=True)[0]
