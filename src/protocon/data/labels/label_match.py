"""Which label belongs to which file: rows of a labels file against what is there.

A row that cannot be used is set aside and named in a warning; training continues with the others.
"""

import difflib
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

import numpy as np

from protocon.data.files.file_report import SkippedFile
from protocon.data.files.names import leaves, normal, shown
from protocon.data.files.places import some
from protocon.data.imageset import UNKNOWN
from protocon.data.labels.file_finder import FileFinder, said_of
from protocon.data.labels.label_file import LabelRow, LabelTable, sorted_names
from protocon.data.labels.similar_names import similar_classes
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
    notes: list[str]
    """What was taken for what."""
    listed: list[str] = field(default_factory=list)
    """Files whose label answers for a list to look at."""


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
    finder: FileFinder | None = None,
    at_least: int = 2,
) -> Matched:
    """Give each file its label.

    Args:
        source: what messages call the labels file.
        table: its rows; names are relative to the files' folder.
        files: names of the images, or ids of embeddings.
        skipped: files that are there but not used, with the reason.
        finder: of these files; by default one that knows exact names only.
        at_least: fewer classes than this are an error.
    """
    finder = finder or FileFinder(files, tolerant=False)
    warnings = [f"{source}, {problem}; the row is not used" for problem in table.problems]
    given: dict[int, _Given] = {}
    missing: list[LabelRow] = []
    taken: dict[str, list[tuple[str, str]]] = {}
    for row in table.rows:
        found = finder.find(row.file)
        if found.place is None:
            missing.append(row)
            continue
        given.setdefault(found.place, _Given()).rows.append(row)
        if found.how:
            taken.setdefault(found.how, []).append((row.file, files[found.place]))
    warnings += _about_missing(source, missing, finder, skipped)
    warnings += _about_repeated(source, given)
    chosen = {place: said.labels() for place, said in given.items()}
    one = {place: labels.pop() for place, labels in chosen.items() if len(labels) == 1}
    class_names = sorted_names(set(one.values()))
    if not given and missing and at_least:
        raise DataError(_nothing_fits(source, missing, files))
    _need_classes(source, class_names, warnings, at_least)
    counts = Counter(one.values())
    warnings += [f"{source}: {line}" for line in similar_classes(class_names, [counts[name] for name in class_names])]
    warnings += _about_single(source, one, given)
    numbers = {class_name: number for number, class_name in enumerate(class_names)}
    labels = np.full(len(files), UNKNOWN, dtype=np.int64)
    for place, label in one.items():
        labels[place] = numbers[label]
    notes = [f"{source}: {note}" for note in table.notes] + said_of(source, taken)
    listed = [files[place] for place in sorted(one) if any(row.listed for row in given[place].rows)]
    return Matched(labels, class_names, warnings, notes, listed)


def _nothing_fits(source: str, missing: list[LabelRow], files: Sequence[str]) -> str:
    """The message for a labels file that names none of the images."""
    return (
        f"{source}: none of its {len(missing):,} rows names one of the {len(files):,} images. The first row names "
        f"{shown(missing[0].file)!r} (label {shown(missing[0].label)!r}); the first image is {shown(files[0])!r}. "
        "Expected in each row a file, relative to the folder, and its label."
    )


def _need_classes(source: str, class_names: tuple[str, ...], warnings: list[str], at_least: int) -> None:
    if len(class_names) >= at_least:
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
    single = {label: where[0] for label, where in sorted(places.items()) if len(where) == 1}
    if len(single) > 1:
        named = some([shown(label) for label in single])
        return [f"{source}: {len(single):,} classes have one label each ({named}); two or more are safer"]
    return [
        f"{source}: class {shown(label)} has one label ({shown(given[place].rows[0].file)}); two or more are safer"
        for label, place in single.items()
    ]


def _other_number(name: str, other: str) -> bool:
    """Whether two names differ in the values of digits alone: IMG_0012.jpg is no IMG_0013.jpg misspelt."""
    return re.sub(r"\d", "0", name.lower()) == re.sub(r"\d", "0", other.lower())


def _about_missing(
    source: str, missing: list[LabelRow], finder: FileFinder, skipped: Sequence[SkippedFile]
) -> list[str]:
    """A line for each row whose file is not among the images, with the likeliest cause."""
    if not missing:
        return []
    reasons = {normal(skip.path): skip.reason for skip in skipped}
    by_name: dict[str, str] = {}
    for place in finder.places:
        by_name.setdefault(PurePosixPath(place).name.lower(), place)
        by_name.setdefault(PurePosixPath(place).stem.lower(), place)
    searched = list(finder.places)[:_SEARCHED]
    lines = []
    for number, row in enumerate(missing):
        name, several = finder.relative(row.file), finder.find(row.file).several
        guess = by_name.get(PurePosixPath(name).name.lower())
        if guess is None and not several and number < _GUESSED:
            near = (other for other in difflib.get_close_matches(name, searched, n=1) if not _other_number(name, other))
            guess = next(near, None)
        if name in reasons:
            why = f"is not used: {reasons[name]}"
        elif several:
            why = f"could be any of {some([shown(file) for file in several], 3)}"
        elif leaves(name):
            why = "points out of the folder"
        else:
            why = "is not there" + (f" (did you mean {shown(guess)}?)" if guess else "")
        where = f"{row.source or source}, line {row.line}"
        lines.append(f"{where}: {shown(row.file)} {why}; its label {shown(row.label)!r} is not used")
    return lines
