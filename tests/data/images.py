"""Small images and image folders for the tests."""

from pathlib import Path

import numpy as np
from PIL import Image


def gradient(width: int = 8, height: int = 8, shift: int = 0) -> np.ndarray:
    """A picture (H, W, 3) in which every pixel and channel differs from its neighbours."""
    y, x = np.mgrid[:height, :width]
    return np.stack([x * 17 + shift, y * 23 + 5, (x + y) * 11 + 2 * shift], axis=2).astype(np.uint8)


def save_png(path: Path, picture: np.ndarray | None = None) -> Path:
    """Write a picture as PNG, making its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(gradient() if picture is None else picture).save(path)
    return path


def class_folders(root: Path, counts: dict[str, int], size: int = 8) -> None:
    """root/<class>/<number>.png, every picture different."""
    for number, (name, count) in enumerate(counts.items()):
        for i in range(count):
            save_png(root / name / f"{i:03}.png", gradient(size, size, shift=40 * number + 3 * i))
