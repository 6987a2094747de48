"""Decoded images in a temporary file: decoded once, and in memory only while they are looked at."""

import hashlib
import os
import tempfile
import weakref
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

_HASHED = 256


class Spool:
    """Rows of bytes in a file without a name, which is gone when its last user is, however that ended.

    Threads may read and write at once.

    Args:
        folder: on whose disk; made if it is not there.
        count: of rows.
        shape: of a row, uint8.
    """

    def __init__(self, folder: Path, count: int, shape: tuple[int, int, int]) -> None:
        self.shape = shape
        self.row = int(np.prod(shape))
        folder.mkdir(parents=True, exist_ok=True)
        self._file = tempfile.TemporaryFile(dir=folder, prefix="spool-")  # noqa: SIM115  # closed with this object
        weakref.finalize(self, self._file.close)
        try:
            os.posix_fallocate(self._file.fileno(), 0, max(1, count * self.row))  # a full disk is told at once
        except OSError:
            self._file.close()
            raise

    def write(self, row: int, pixels: Tensor) -> None:
        """Put a row in its place."""
        content = pixels.contiguous().numpy().reshape(-1).data
        if os.pwrite(self._file.fileno(), content, row * self.row) != self.row:
            raise OSError("a decoded image could not be written whole")

    def read(self, rows: np.ndarray) -> Tensor:
        """Rows (n, *shape), uint8."""
        pixels = np.empty((len(rows), *self.shape), dtype=np.uint8)
        for number, row in enumerate(rows.tolist()):
            content = os.pread(self._file.fileno(), self.row, row * self.row)
            pixels[number] = np.frombuffer(content, dtype=np.uint8).reshape(self.shape)
        return torch.from_numpy(pixels)

    def content(self, rows: np.ndarray) -> str:
        """Hash of these rows, as `content_of` makes it of the same images in memory."""
        digest = hashlib.sha256(f"{np.dtype(np.uint8).str}{(len(rows), *self.shape)}".encode())
        for start in range(0, len(rows), _HASHED):
            digest.update(self.read(rows[start : start + _HASHED]).numpy().reshape(-1).data)
        return digest.hexdigest()


def spools_work() -> bool:
    """Whether the system has what spools are made of."""
    return all(hasattr(os, name) for name in ("posix_fallocate", "pread", "pwrite"))
