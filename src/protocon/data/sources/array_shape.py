"""How many channels the images of an array file have, from its header alone."""

import zipfile
from pathlib import Path
from typing import BinaryIO

from numpy.lib import format as npy

from protocon.data.sources.arrays import X_NAMES


def channels_of(root: Path) -> int | None:
    """1 or 3; None for embeddings, and for a file that cannot be read, which its source says more about."""
    try:
        if root.suffix.lower() == ".npy":
            with root.open("rb") as file:
                return _channels(_shape(file))
        with zipfile.ZipFile(root) as members:
            for name in X_NAMES:
                if f"{name}.npy" in members.namelist():
                    with members.open(f"{name}.npy") as file:
                        return _channels(_shape(file))  # type: ignore[arg-type]  # read() is all that is needed
    except Exception:  # whatever a damaged zip or header raises
        return None
    return None


def _shape(file: BinaryIO) -> tuple[int, ...]:
    version = npy.read_magic(file)
    read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape: tuple[int, ...] = read(file)[0]
    return shape


def _channels(shape: tuple[int, ...]) -> int | None:
    """Of images (N, H, W), (N, H, W, C) or (N, C, H, W)."""
    if len(shape) == 3:
        return 1
    if len(shape) != 4:
        return None
    return next((count for count in (shape[1], shape[3]) if count in (1, 3)), None)
