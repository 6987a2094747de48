"""The images of a run whose labels can be taken: given ones that do not look wrong, and accepted ones."""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from protocon.errors import RunError
from protocon.report.label_table import NONE, read_labels, read_names
from protocon.report.record import read_record

_FOLDERS = ("folder", "imagefolder", "metadata")


@dataclass(frozen=True)
class LabelledImage:
    """One image with its label."""

    file: str
    """Relative to the folder of the images."""
    path: Path
    label: str
    given: bool
    """Whether a person gave the label."""
    confidence: float | None
    """How sure the model is of a label that it made."""


@dataclass(frozen=True)
class LabelledImages:
    """What is exported."""

    root: Path
    images: list[LabelledImage]
    class_names: tuple[str, ...]
    left_out: int
    """Images whose labels nobody should take unseen."""
    unchecked: int = 0
    """Of these, the ones with a label that is sure, which nothing checks."""


def labelled_images(run: Path) -> LabelledImages:
    """Read a finished run on a folder of images."""
    record = read_record(run)
    if not record.labels_file.is_file():
        raise RunError(f"{run} has no labels.csv: its training has not finished")
    root = Path(str(record.data.get("root") or "")).expanduser()
    if record.data.get("data") not in _FOLDERS or not root.is_dir():
        raise RunError(
            f"{run} learnt from {record.data.get('data')} at {root}, which is no folder of images that is there. "
            "Labels alone are in labels.csv"
        )
    table = read_labels(record.labels_file)
    rows = np.flatnonzero(table.accepted & (table.labels["refined"] != NONE))
    if not len(rows):
        raise RunError(f"{run}: no label is accepted, so there is nothing to export. Look at the images to review")
    names = read_names(record.labels_file, rows)
    images = []
    for row in rows.tolist():
        given = table.labels["given"][row] != NONE
        sure = None if given else round(float(table.scores["refined_confidence"][row]), 4)
        label = table.class_names[int(table.labels["refined"][row])]
        images.append(LabelledImage(names[row], root / names[row], label, bool(given), sure))
    missing = [image.file for image in images if not image.path.is_file()]
    if missing:
        raise RunError(f"{root}: {len(missing):,} images are gone since, the first is {missing[0]}")
    classes = tuple(name for name in table.class_names if any(image.label == name for image in images))
    return LabelledImages(root.resolve(), images, classes, len(table) - len(rows), int(table.unchecked.sum()))


def flat_names(images: list[LabelledImage]) -> list[str]:
    """A name without folders for each image; no two are the same, not even without their extensions."""
    taken: set[str] = set()
    names = []
    for image in images:
        stem, suffix = os.path.splitext(image.file.replace("/", "__"))  # noqa: PTH122  # a text, not a path
        name, number = stem, 2
        while name.lower() in taken:
            name, number = f"{stem}-{number}", number + 1
        taken.add(name.lower())
        names.append(name + suffix)
    return names


def place(image: Path, target: Path) -> None:
    """Put an image where it is wanted: linked where the file system can, else copied."""
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(image.resolve(), target)
    except OSError:
        shutil.copyfile(image, target)
