"""README's path in little: a folder of pictures, labels.csv, and an encoder whose weights come as a package."""

import csv
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from PIL import Image

from protocon.networks import packaged
from tests.engine.kills import OFTEN
from tests.features.tiny import NAME, SIDE, striped_images, tiny_module

PACKAGE = "tiny_weights_in_a_package"
TINY = packaged.Packaged(NAME, PACKAGE, side=SIDE, pooled_blocks=0, second_look=0.0)
IMAGES, LABELS = 48, 12
SETTINGS = (
    *(f"image_size={SIDE}", "epochs=3", "batch_size=4", "components=16"),
    *("run.cross_check=3", "tensorboard=false", "network.hidden=16", "network.projection_dim=8"),
)
"""A run of about a second."""


def make_photos(place: Path) -> None:
    """`photos/`, `labels.csv` and `packages/`, which holds a package of weights."""
    (place / "photos").mkdir(parents=True)
    images, kind = striped_images(IMAGES)
    for number, pixels in enumerate(images):
        Image.fromarray(pixels).save(place / "photos" / f"{number:03}.png")
    with (place / "labels.csv").open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(("file", "label"))
        rows.writerows((f"{number:03}.png", ["none", "across", "down"][kind[number]]) for number in range(LABELS))
    make_package(place / "packages")


def make_package(folder: Path, seed: int = 0) -> None:
    """A package of weights, as the one that the extra `photos` installs."""
    models = folder / PACKAGE / "models"
    models.mkdir(parents=True)
    (folder / PACKAGE / "__init__.py").write_text("raise AssertionError('its code must not run')\n")
    torch.save(tiny_module(seed).state_dict(), models / "tiny.pth")


def install(folder: Path, monkeypatch: pytest.MonkeyPatch | None = None) -> None:
    """Let `--frozen` find the package there, and the tiny encoder fit it."""
    if monkeypatch is None:
        sys.path.insert(0, str(folder))
        packaged.PACKAGED = (TINY,)
    else:
        monkeypatch.syspath_prepend(str(folder))
        monkeypatch.setattr(packaged, "PACKAGED", (TINY,))


def arguments(place: Path, out: Path, *more: str) -> Sequence[str]:
    """`train photos --labels labels.csv --frozen`."""
    return (
        *("train", str(place / "photos"), "--labels", str(place / "labels.csv"), "--frozen", "--json"),
        *("--out", str(out), "--name", "run", *SETTINGS, OFTEN, *more),
    )
