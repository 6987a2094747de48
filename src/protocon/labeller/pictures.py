"""Pictures for the page: decoded here and encoded anew, so that a browser gets nothing but plain pixels."""

import io
import threading
from collections import OrderedDict
from typing import NamedTuple

from protocon.data.files.decode import decode_whole
from protocon.labeller.photos import Photos

SIDES = {"thumb": 168, "large": 900, "full": 2400}
"""Longest side in pixels by name."""
_LOSSLESS_SIDE = 256
_KEPT_BYTES = 96 * 2**20


class Picture(NamedTuple):
    """A picture as it is sent."""

    content: bytes
    kind: str
    """Media type."""


class Pictures:
    """Pictures of a folder's images by number and size; the latest are kept.

    Args:
        photos: where they come from.
    """

    def __init__(self, photos: Photos) -> None:
        self.photos = photos
        self._kept: OrderedDict[tuple[int, str], Picture] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def get(self, number: int, size: str) -> Picture:
        """The picture; DataError if the file cannot be decoded."""
        key = (number, size)
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        with self.photos.open(number) as file:
            image = decode_whole(file, side=SIDES[size], name=self.photos.files[number].path)
        content = io.BytesIO()
        if max(image.size) <= _LOSSLESS_SIDE and size != "thumb":
            image.save(content, format="PNG")
            kind = "image/png"
        else:
            image.save(content, format="JPEG", quality=88)
            kind = "image/jpeg"
        picture = Picture(content.getvalue(), kind)
        with self._lock:
            self._kept[key] = picture
            self._bytes += len(picture.content)
            while self._bytes > _KEPT_BYTES:
                _, old = self._kept.popitem(last=False)
                self._bytes -= len(old.content)
        return picture
