"""Decoded images kept on disk: decoding a folder of photographs can take longer than training on it."""

import hashlib
import os
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from protocon.data.files.stores import FileEntry
from protocon.data.files.strings import StringTable
from protocon.errors import DataError

_DECODER_VERSION = 2
"""Raise it whenever decoding gives other pixels than before."""


def cache_file(folder: Path, where: str, files: list[FileEntry], *, size: int, grey: bool, squash: bool) -> Path:
    """Where the decoded images of just these files, unchanged, are kept: another file, another name.

    Args:
        folder: that holds decoded images.
        where: the store that the files are in.
        files: with their sizes and times, which tell whether they have changed.
        size: side of the decoded images.
        grey: whether they have one channel.
        squash: the whole of each picture instead of its centre.
    """
    digest = hashlib.sha256(f"{_DECODER_VERSION} {size} {grey} {squash} {where}".encode("utf-8", "surrogateescape"))
    for part in StringTable(entry.path for entry in files).buffers():
        digest.update(part)
    digest.update(np.array([(entry.size, entry.stamp) for entry in files], dtype=np.int64).tobytes())
    return folder / f"images-{digest.hexdigest()[:32]}.npy"


def load_cached(path: Path, shape: tuple[int, ...]) -> Tensor | None:
    """The images kept there, or None if there are none of this shape."""
    try:
        images = np.load(path, allow_pickle=False)
    except Exception:  # damaged in whatever way: it is made anew
        return None
    if images.dtype != np.uint8 or images.shape != shape:
        return None
    return torch.from_numpy(images)


def save_cached(path: Path, images: Tensor) -> None:
    """Keep images: the file appears complete or not at all, also where two processes write it."""
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with part.open("wb") as file:
            np.save(file, images.numpy(), allow_pickle=False)
        part.replace(path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise DataError(
            f"The cache {path.parent} cannot be written: {error.strerror}. Choose another folder, or none."
        ) from error
