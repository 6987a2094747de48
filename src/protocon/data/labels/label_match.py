"""Which label belongs to which file: rows of a labels file against what is there.

A row that cannot be used is set aside and named in a warning; training goes on with the others.
"""

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

import numpy as np

from protocon.data.files.file_report import SkippedFile
from protocon.data.files.names import leaves, normal, shown
from protocon.data.files.places import some
from protocon.data.imageset import UNKNOWN
from protocon.data.labels.label_file import LabelRow, LabelTable, sorted_names
from protocon.errors import DataError

UNKNOWN_LABELS = frozenset(("", "-1"))
_GUESSED = 20
"""Rows for which a similar name is searched: each is a search through all files."""
_SEARCHED = 20_000


@dataclass(frozen=True)
class Matched:
    """Labels of the files, and what was odd about the rows."""

    labels: np.ndarray
    """int64 (N,); −1 = unknown."""
    class_names: tuple[str, ...]
    warnings: list[str]


@dataclass
class _Given:
    """What the rows say of one file."""

    rows: list[LabelRow] = field(default_factory=list)

    def labels(self) -> set[str]:
        return {row.label for row in self.rows} - UNKNOWN_LABELS


def match_labels(
    source: str,
    table: LabelTable,
    files: Sequence[str],
    *,
    skipped: Sequence[SkippedFile] = (),
    root: Path | None = None,
    least: int = 2,
) -> Matched:
    """Give each file its label.

    Args:
        source: what messages call the labels file.
        table: its rows; names are relative to the files' folder.
        files: names of the images, or ids of embeddings.
        skipped: files that are there but not used, with the reason.
        root: the files' folder: a row may also name a file by its full path.
        least: fewer classes than this are an error.
    """
    places = {normal(name): place for place, name in enumerate(files)}
    warnings = [f"{source}, {problem}; the row is not used" for problem in table.problems]
    given: dict[int, _Given] = {}
    missing: list[LabelRow] = []
    for row in table.rows:
        place = places.get(_relative(row.file, root))
        if place is None:
            missing.append(row)
        else:
            given.setdefault(place, _Given()).rows.append(row)
    warnings += _about_missing(source, missing, places, skipped, root)
    warnings += _about_repeated(source, given)
    chosen = {place: said.labels() for place, said in given.items()}
    one = {place: labels.pop() for place, labels in chosen.items() if len(labels) == 1}
    class_names = sorted_names(set(one.values()))
    _need_classes(source, class_names, warnings, least)
    warnings += _about_single(source, one, given)
    numbers = {class_name: number for number, class_name in enumerate(class_names)}
    labels = np.full(len(files), UNKNOWN, dtype=np.int64)
    for place, label in one.items():
        labels[place] = numbers[label]
    return Matched(labels, class_names, warnings)


def _relative(file: str, root: Path | None) -> str:
    """A row's file as the listing names it."""
    if root is not None and Path(file).is_absolute():
        for base in (root, root.resolve()):
            if Path(file).is_relative_to(base):
                return normal(Path(file).relative_to(base).as_posix())
    return normal(file)


def _need_classes(source: str, class_names: tuple[str, ...], warnings: list[str], least: int) -> None:
    if len(class_names) >= least:
        return
    found = f"{len(class_names)} class{'es' if not class_names else ''}"
    text = f"{source} names {found} ({some(list(class_names)) or 'no label is filled in'}); expected at least two."
    if warnings:
        text += f" {len(warnings)} remarks on its rows:\n  " + "\n  ".join(warnings[:5])
        text += f"\n  and {len(warnings) - 5:,} more" if len(warnings) > 5 else ""
    raise DataError(text)


def _about_repeated(source: str, given: dict[int, _Given]) -> list[str]:
    """Conflicts, each with its lines; and in one line how often a row merely repeats another."""
    lines = []
    repeats = 0
    for said in given.values():
        labels = said.labels()
        if len(labels) > 1:
            which = ", ".join(f"{shown(row.label)} (line {row.line})" for row in said.rows if row.label in labels)
            where = said.rows[0].source or source
            lines.append(f"{where}: {shown(said.rows[0].file)} has different labels: {which}; it counts as unlabelled")
        else:
            repeats += len(said.rows) - 1
    if repeats:
        which = "1 row repeats another" if repeats == 1 else f"{repeats:,} rows repeat others"
        lines.append(f"{source}: {which}; nothing is lost")
    return lines


def _about_single(source: str, one: dict[int, str], given: dict[int, _Given]) -> list[str]:
    """Classes with a single label."""
    places: dict[str, list[int]] = {}
    for place, label in one.items():
        places.setdefault(label, []).append(place)
    return [
        f"{source}: class {shown(label)} has one label ({shown(given[where[0]].rows[0].file)}); two or more are safer"
        for label, where in sorted(places.items())
        if len(where) == 1
    ]


def _about_missing(
    source: str, missing: list[LabelRow], places: dict[str, int], skipped: Sequence[SkippedFile], root: Path | None
) -> list[str]:
    """A line for each row whose file is not among the images, with the likeliest cause."""
    if not missing:
        return []
    reasons = {normal(skip.path): skip.reason for skip in skipped}
    by_name: dict[str, str] = {}
    for place in places:
        by_name.setdefault(PurePosixPath(place).name.lower(), place)
        by_name.setdefault(PurePosixPath(place).stem.lower(), place)
    searched = list(places)[:_SEARCHED]
    lines = []
    for number, row in enumerate(missing):
        name = _relative(row.file, root)
        guess = by_name.get(PurePosixPath(name).name.lower())
        if guess is None and number < _GUESSED:
            guess = next(iter(difflib.get_close_matches(name, searched, n=1)), None)
        if name in reasons:
            why = f"is not used: {reasons[name]}"
        elif leaves(name):
            why = "points out of the folder"
        else:
            why = "is not there" + (f" (did you mean {shown(guess)}?)" if guess else "")
        where = f"{row.source or source}, line {row.line}"
        lines.append(f"{where}: {shown(row.file)} {why}; its label {shown(row.label)!r} is not used")
    return lines
