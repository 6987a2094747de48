"""Digests of files, by which an image is known again whatever it is called."""

import hashlib
from pathlib import Path

_BLOCK = 2**20


def file_digest(path: Path) -> str:
    """sha256 of a file's bytes, in hexadecimal."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()
