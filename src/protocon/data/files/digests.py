"""Digests of files and arrays, by which images are known again whatever they are called."""

import hashlib
from pathlib import Path

import numpy as np
from torch import Tensor

_BLOCK = 2**20


def file_digest(path: Path) -> str:
    """sha256 of a file's bytes, in hexadecimal."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def content_of(array: Tensor | np.ndarray) -> str:
    """Hash of an array's type, shape and bytes."""
    values = np.ascontiguousarray(array.numpy() if isinstance(array, Tensor) else array)
    digest = hashlib.sha256(f"{values.dtype.str}{values.shape}".encode())
    digest.update(values.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()
