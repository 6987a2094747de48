"""labels.csv as arrays: a million rows fit into a few tens of megabytes, and only chosen file names are kept."""

import csv
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from protocon.errors import RunError

NONE = -1
"""In a column of labels: the cell is empty."""

_LABELS = ("given", "refined", "classifier", "cluster", "prototype", "truth")
_SCORES = ("refined_confidence", "classifier_confidence", "cluster_confidence", "prototype_score")


@dataclass(frozen=True)
class LabelTable:
    """The columns of labels.csv, row by row in the order of the data set."""

    class_names: tuple[str, ...]
    """In the order in which they appear, sorted as numbers where they are numbers."""
    labels: dict[str, np.ndarray]
    """given, refined, classifier, cluster, prototype, truth: numbers of classes, int32 (N,), `NONE` if empty."""
    scores: dict[str, np.ndarray]
    """refined_confidence, …, prototype_score: float32 (N,), NaN if empty."""
    rank: np.ndarray
    """review_rank, int64 (N,), 0 if accepted."""

    def __len__(self) -> int:
        return len(self.rank)

    @property
    def unlabelled(self) -> np.ndarray:
        """Which images the run was given no label of, (N,)."""
        return np.asarray(self.labels["given"] == NONE)

    def has(self, column: str) -> bool:
        """Whether any unlabelled image has an entry in this column of labels."""
        return bool((self.labels[column][self.unlabelled] != NONE).any())

    def agreement(self) -> float | None:
        """Share of unlabelled images on which classifier and cluster agree; None without clusters."""
        use = self.unlabelled & (self.labels["cluster"] != NONE)
        if not use.any():
            return None
        return float((self.labels["classifier"][use] == self.labels["cluster"][use]).mean())

    def accuracy(self, column: str) -> tuple[float, int] | None:
        """Share of right entries in a column of labels, and of how many; None where no truth is known."""
        truth = self.labels["truth"]
        use = (truth != NONE) & (self.labels[column] != NONE)
        return (float((self.labels[column][use] == truth[use]).mean()), int(use.sum())) if use.any() else None


def read_labels(file: Path) -> LabelTable:
    """Read labels.csv."""
    names: dict[str, int] = {"": NONE}
    labels = {column: array("i") for column in _LABELS}
    scores = {column: array("f") for column in _SCORES}
    rank = array("q")
    split = len(_LABELS), len(_LABELS) + len(_SCORES)
    try:
        for cells in _rows(file, (*_LABELS, *_SCORES, "review_rank")):
            for numbers, name in zip(labels.values(), cells[: split[0]], strict=True):
                numbers.append(names.setdefault(name, len(names) - 1))
            for values, text in zip(scores.values(), cells[split[0] : split[1]], strict=True):
                values.append(float(text or "nan"))
            rank.append(int(cells[-1] or 0))
    except ValueError as error:
        raise RunError(f"{file} is damaged: {error}. Remove it to have the report without labels.") from error
    order = sorted((name for name in names if name), key=_natural)
    # New numbers of the classes, by old number; the last entry is for NONE.
    place = np.full(len(order) + 1, NONE, dtype=np.int32)
    for number, name in enumerate(order):
        place[names[name]] = number
    return LabelTable(
        class_names=tuple(order),
        labels={column: place[np.array(numbers, dtype=np.int32)] for column, numbers in labels.items()},
        scores={column: np.array(values, dtype=np.float32) for column, values in scores.items()},
        rank=np.array(rank, dtype=np.int64),
    )


def _natural(name: str) -> tuple[int, float, str]:
    try:
        return 0, float(name), name
    except ValueError:
        return 1, 0.0, name


def read_names(file: Path, rows: np.ndarray) -> dict[int, str]:
    """File names of these rows, counted from 0."""
    wanted = set(rows.tolist())
    return {number: name for number, (name,) in enumerate(_rows(file, ("file",))) if number in wanted}


def _rows(file: Path, columns: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """These columns' cells, row by row."""
    # A file name need not be valid UTF-8.
    with file.open(encoding="utf-8", errors="surrogateescape", newline="") as lines:
        reader = csv.reader(lines)
        heading = next(reader, [])
        missing = [column for column in columns if column not in heading]
        if missing:
            raise RunError(
                f"{file} lacks the columns {', '.join(missing)}: an earlier version wrote it, or it was changed. "
                "Remove it to have the report without labels, or train again."
            )
        places = [heading.index(column) for column in columns]
        for number, cells in enumerate(reader, start=1):
            if len(cells) != len(heading):
                raise RunError(f"{file} is damaged: row {number} has {len(cells)} cells of {len(heading)}.")
            yield tuple(cells[place] for place in places)
