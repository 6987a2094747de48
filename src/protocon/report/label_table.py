"""labels.csv and opinions.csv as arrays: a million rows fit into a few tens of megabytes.

Runs of version 0.1 have all columns in one labels.csv; they are read too.
"""

import csv
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from protocon.errors import RunError
from protocon.runs.layout import OPINIONS

NONE = -1
"""In a column of labels: the cell is empty."""

_OPINIONS = ("classifier", "cluster", "prototype", "truth")
_SCORES = ("classifier_confidence", "cluster_confidence", "prototype_score")
_OLD = {"label": "refined", "confidence": "refined_confidence"}
"""What version 0.1 calls columns of labels.csv."""


@dataclass(frozen=True)
class RunLabels:
    """The columns of labels.csv and opinions.csv, row by row in the order of the data set."""

    class_names: tuple[str, ...]
    """In the order in which they appear, sorted as numbers where they are numbers."""
    labels: dict[str, np.ndarray]
    """given, refined, looks_like, classifier, cluster, prototype, truth: numbers of classes, int32 (N,), `NONE` if
    empty."""
    scores: dict[str, np.ndarray]
    """refined_confidence, …, prototype_score: float32 (N,), NaN if empty."""
    rank: np.ndarray
    """review_rank, int64 (N,), 0 if it is not in the list to look at."""
    accepted: np.ndarray
    """Whether the triage says accept, bool (N,)."""
    unchecked: np.ndarray
    """Whether it says unchecked: the label is sure, and nothing tells how often such labels are right; bool (N,)."""
    why: dict[int, str] = field(default_factory=dict)
    """Row → why it is in the list to look at, as far as the file says."""

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


class _Names:
    """Class names as numbers, in the order in which they come."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {"": NONE}

    def number(self, name: str) -> int:
        return self.numbers.setdefault(name, len(self.numbers) - 1)

    def sorted(self) -> tuple[tuple[str, ...], np.ndarray]:
        """The names in reading order, and the new number of each old one; the last entry is for `NONE`."""
        order = sorted((name for name in self.numbers if name), key=_natural)
        place = np.full(len(order) + 1, NONE, dtype=np.int32)
        for number, name in enumerate(order):
            place[self.numbers[name]] = number
        return tuple(order), place


def read_labels(file: Path) -> RunLabels:
    """Read labels.csv, and opinions.csv beside it."""
    names = _Names()
    try:
        labels, scores, rank, triage, why = _read_main(file, names)
        opinions, more = _read_opinions(file, names, len(rank))
    except ValueError as error:
        raise RunError(f"{file} is damaged: {error}. Remove it to have the report without labels.") from error
    order, place = names.sorted()
    return RunLabels(
        class_names=order,
        labels={column: place[np.array(numbers, dtype=np.int32)] for column, numbers in (labels | opinions).items()},
        scores={column: np.array(values, dtype=np.float32) for column, values in (scores | more).items()},
        rank=np.array(rank, dtype=np.int64),
        accepted=np.array(triage["accept"], dtype=bool),
        unchecked=np.array(triage["unchecked"], dtype=bool),
        why=why,
    )


_Main = tuple[dict[str, "array[int]"], dict[str, "array[float]"], "array[int]", dict[str, "array[int]"], dict[int, str]]


def _read_main(file: Path, names: _Names) -> _Main:
    """Labels, confidence, rank, acceptance and reasons of every row."""
    old = not is_new(file)
    first = [_OLD[column] if old else column for column in ("label", "confidence")]
    columns = ("given", *first, "review_rank", "triage", *(() if old else ("looks_like", "why")))
    labels = {column: array("i") for column in ("given", "refined", "looks_like")}
    sure, rank = array("f"), array("q")
    sorted_as = {"accept": array("b"), "unchecked": array("b")}
    why: dict[int, str] = {}
    for row, cells in enumerate(_rows(file, columns)):
        given, label, confidence, place, triage, *more = cells
        looks_like, reason = more if more else (label, "")
        labels["given"].append(names.number(given))
        labels["refined"].append(names.number(label))
        labels["looks_like"].append(names.number(looks_like))
        # What a run says of an image whose label was given is no confidence in that label.
        sure.append(float("nan") if given or not confidence else float(confidence))
        rank.append(int(place or 0))
        for kind, rows in sorted_as.items():
            rows.append(triage == kind)
        if reason:
            why[row] = reason
    return labels, {"refined_confidence": sure}, rank, sorted_as, why


def _read_opinions(file: Path, names: _Names, count: int) -> tuple[dict[str, "array[int]"], dict[str, "array[float]"]]:
    """The opinions behind the labels; empty where opinions.csv is gone."""
    labels = {column: array("i") for column in _OPINIONS}
    scores = {column: array("f") for column in _SCORES}
    source = file.with_name(OPINIONS) if is_new(file) else file
    rows = _rows(source, (*_OPINIONS, *_SCORES)) if source.is_file() else iter([("",) * 7] * count)
    found = 0
    for cells in rows:
        found += 1
        for numbers, name in zip(labels.values(), cells, strict=False):
            numbers.append(names.number(name))
        for values, text in zip(scores.values(), cells[len(_OPINIONS) :], strict=True):
            values.append(float(text or "nan"))
    if found != count:
        raise RunError(
            f"{source} has {found:,} rows and {file.name} {count:,}: one of them was changed. Rows may be "
            f"edited, but not added or removed; remove {source.name} to have the report without opinions."
        )
    return labels, scores


def is_new(file: Path) -> bool:
    """Whether a labels.csv has the columns of version 0.2 on."""
    return "label" in _heading(file)


def _natural(name: str) -> tuple[int, float, str]:
    try:
        return 0, float(name), name
    except ValueError:
        return 1, 0.0, name


def read_names(file: Path, rows: np.ndarray) -> dict[int, str]:
    """File names of these rows, counted from 0."""
    wanted = set(rows.tolist())
    return {number: name for number, (name,) in enumerate(_rows(file, ("file",))) if number in wanted}


def _heading(file: Path) -> list[str]:
    with file.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as lines:
        return next(csv.reader(lines, delimiter=_separator(file)), [])


def _separator(file: Path) -> str:
    """Of a file that may have gone through a spreadsheet: the separator that the heading has most of."""
    with file.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as lines:
        heading = lines.readline()
    return max(",;\t", key=heading.count)


def _rows(file: Path, columns: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """These columns' cells, row by row."""
    # A file name need not be valid UTF-8.
    with file.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as lines:
        reader = csv.reader(lines, delimiter=_separator(file))
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
