"""Label splits as JSON that people can read and programs can check."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from protocon.base.atomic import write_bytes
from protocon.data.imageset import ImageSet
from protocon.data.labels.label_split import NO_LABELS, Split
from protocon.errors import DataError

_FORMAT = "protocon-split"
_VERSION = 1
_KEYS = ("version", "dataset", "fingerprint", "size", "rule", "seed", "labelled", "unlabelled")


def save_split(split: Split, path: Path) -> None:
    """Write a split: one line for each labelled image, the unlabelled ones as `others` or `all`.

    The file appears complete or not at all.
    """
    head = {
        "format": _FORMAT,
        "version": _VERSION,
        "dataset": split.dataset,
        "fingerprint": split.fingerprint,
        "size": split.size,
        "rule": split.rule,
        "seed": split.seed,
        "unlabelled": _describe_unlabelled(split),
    }
    lines = [f"  {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}" for key, value in head.items()]
    rows = [
        json.dumps({"index": int(index), "label": split.class_names[int(label)], "id": name}, ensure_ascii=False)
        for index, label, name in zip(split.labelled, split.labels, split.ids, strict=True)
    ]
    lines.append('  "labelled": [\n    ' + ",\n    ".join(rows) + "\n  ]")
    write_bytes(path, ("{\n" + ",\n".join(lines) + "\n}\n").encode("utf-8", "surrogateescape"))


def _describe_unlabelled(split: Split) -> str | list[int]:
    everything = np.arange(split.size)
    if np.array_equal(split.unlabelled, np.setdiff1d(everything, split.labelled)):
        return "others"
    if np.array_equal(split.unlabelled, everything):
        return "all"
    return [int(index) for index in split.unlabelled]


def load_split(path: Path, images: ImageSet) -> Split:
    """Read a split and check that it belongs to these images."""
    content = _read(path)
    stated, actual = str(content["fingerprint"]), images.fingerprint()
    if stated != actual:
        raise DataError(
            f"{path} was made for other data: {content['dataset']!r} with {content['size']} images, "
            f"fingerprint {stated[:12]}…; but this is {images.name!r} with {len(images)} images, fingerprint "
            f"{actual[:12]}…. Files, labels or classes have changed: restore them, or make a new split."
        )
    numbers = {class_name: number for number, class_name in enumerate(images.class_names)}
    indices, labels = [], []
    for row in content["labelled"]:
        if not isinstance(row, dict) or not {"index", "label", "id"} <= row.keys():
            raise DataError(f"{path}: a labelled image needs index, label and id, got {row!r}.")
        if not isinstance(row["label"], str) or row["label"] not in numbers:
            raise DataError(f"{path}: {row['label']!r} is not a class of {images.name}.")
        indices.append(row["index"])
        labels.append(numbers[row["label"]])
    without = not indices and content["rule"] == NO_LABELS
    labelled = np.empty(0, dtype=np.int64) if without else _positions(path, "labelled", indices, len(images))
    order = np.argsort(labelled)
    ids = tuple(images.ids[int(i)] for i in labelled[order])
    for index, name, place in zip(labelled[order], ids, order, strict=True):
        if content["labelled"][int(place)]["id"] != name:
            raise DataError(f"{path}: image {index} is {name!r}, not {content['labelled'][int(place)]['id']!r}.")
    return Split(
        labelled=labelled[order],
        labels=np.array(labels, dtype=np.int64)[order],
        ids=ids,
        unlabelled=_unlabelled(path, content["unlabelled"], labelled, len(images)),
        class_names=images.class_names,
        size=len(images),
        dataset=images.name,
        fingerprint=actual,
        rule=str(content["rule"]),
        seed=int(content["seed"]),
    )


def _read(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8", errors="surrogateescape"))
    except OSError as error:
        raise DataError(f"Split {path} cannot be read: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:
        raise DataError(f"Split {path} is not JSON: {error}. Make it anew.") from error
    if not isinstance(content, dict) or content.get("format") != _FORMAT:
        raise DataError(f'{path} is not a label split: expected JSON with "format": "{_FORMAT}".')
    missing = [key for key in _KEYS if key not in content]
    if missing:
        raise DataError(f"Split {path} lacks {', '.join(missing)}. Make it anew.")
    if content["version"] != _VERSION:
        raise DataError(f"Split {path} has version {content['version']}; this program reads {_VERSION}.")
    if not isinstance(content["labelled"], list) or type(content["seed"]) is not int:
        raise DataError(f"Split {path}: expected a list of labelled images and a whole number as seed.")
    return content


def _positions(path: Path, what: str, values: Any, size: int) -> np.ndarray:
    """Checked positions, int64; an empty list is an error too."""
    if not isinstance(values, list) or not values or not all(type(value) is int for value in values):
        raise DataError(f"{path}: the {what} images must be a list of whole numbers that is not empty.")
    if min(values) < 0 or max(values) >= size:
        bad = next(value for value in values if not 0 <= value < size)
        raise DataError(f"{path}: {what} image {bad} does not exist; there are {size}, numbered from 0.")
    if len(set(values)) != len(values):
        raise DataError(f"{path}: some {what} images are listed twice.")
    return np.array(values, dtype=np.int64)


def _unlabelled(path: Path, value: Any, labelled: np.ndarray, size: int) -> np.ndarray:
    everything = np.arange(size, dtype=np.int64)
    if value == "all":
        return everything
    if value == "others":
        return np.setdiff1d(everything, labelled)
    return np.sort(_positions(path, "unlabelled", value, size))
