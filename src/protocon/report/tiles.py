"""The images of a page: which, with what is said below each, where the file is, and its picture."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from protocon.data.imageset import ImageSet
from protocon.errors import ProtoConError
from protocon.report import gallery
from protocon.report.figures import percent
from protocon.report.label_table import NONE, RunLabels, read_names
from protocon.report.next_commands import FOLDERS
from protocon.report.outcome import to_check
from protocon.report.record import Record
from protocon.report.thumbnails import thumbnails

Images = Callable[[Record], ImageSet | None]
"""The images of a run's training set, for thumbnails; may raise our errors where they are gone."""


@dataclass(frozen=True)
class Tile:
    """One image with what is said below it."""

    name: str
    picture: str
    """Data URI, or the file's address, to be loaded when it comes into view; empty where there is neither."""
    facts: tuple[tuple[str, str], ...]
    why: str = ""
    link: str = ""
    """Address of the file; empty where it is no file in a folder."""


@dataclass(frozen=True)
class TileStrip:
    """Tiles with a title."""

    title: str
    tiles: tuple[Tile, ...]


@dataclass(frozen=True)
class TileGallery:
    """Strips with what they show."""

    title: str
    note: str
    strips: tuple[TileStrip, ...]


@dataclass(frozen=True)
class ShownTiles:
    """All images of a run's part."""

    wrong: tuple[Tile, ...] = ()
    """Given labels that look wrong."""
    check: tuple[Tile, ...] = ()
    """Given labels that the others do not predict, where no label could be accepted."""
    review: tuple[Tile, ...] = ()
    """Unlabelled images to look at."""
    typical: TileGallery | None = None
    apart: TileGallery | None = None
    """Where opinions differ, for researchers."""
    missing: str = ""
    """Why there are no pictures; empty where there are."""


def choose_images(record: Record, table: RunLabels, images: Images | None, budget: int) -> ShownTiles:
    """The images to show, with pictures as far as `budget` bytes go; beyond that, files are shown from their folder.

    Args:
        record: of the run.
        table: its labels.
        images: the training set; None where it cannot be read.
        budget: bytes for pictures within the page.
    """
    typical, apart = gallery.prototypical(table), gallery.knew_better(table)
    chosen = [g for g in (typical, apart) if g is not None]
    wrong, review = gallery.to_correct(table), gallery.to_review(table)
    strips = [strip.rows for g in chosen for strip in g.strips]
    names = read_names(record.labels_file, np.unique(np.concatenate([wrong, review, *strips]).astype(np.int64)))
    # In the order of what matters most, should the bytes not suffice for all.
    order = [*review[: gallery.FIRST], *(row for rows in strips for row in rows), *review[gallery.FIRST :]]
    doubted = {str(row["file"]): row for row in to_check(record.result)}
    first = [*(names[int(row)] for row in wrong), *doubted]
    pictures, missing = _pictures(record, [*first, *(names[int(row)] for row in order)], images, budget)
    root = _root(record)

    def named(name: str, facts: tuple[tuple[str, str], ...], why: str) -> Tile:
        link = "" if root is None else _address(root / name)
        return Tile(name, pictures.get(name, "" if missing else link), facts, why, link)

    def tile(row: int, facts: tuple[str, ...], why: str = "") -> Tile:
        return named(names[row], tuple(_fact(table, row, fact) for fact in facts), why)

    def tiles(found: gallery.Gallery | None) -> TileGallery | None:
        if found is None:
            return None
        strips = (TileStrip(s.title, tuple(tile(int(row), found.facts) for row in s.rows)) for s in found.strips)
        return TileGallery(found.title, found.note, tuple(strips))

    return ShownTiles(
        wrong=tuple(tile(int(row), (), gallery.reason(table, int(row))) for row in wrong),
        check=tuple(named(name, (), _doubt(row)) for name, row in doubted.items()),
        review=tuple(tile(int(row), _opinions(table, int(row)), gallery.reason(table, int(row))) for row in review),
        typical=tiles(typical),
        apart=tiles(apart),
        missing=missing,
    )


def _doubt(row: dict[str, Any]) -> str:
    """As in: labelled ant, looks like bee (0.939)."""
    return f"labelled {row['given']}, looks like {row['looks_like']} ({float(row['confidence']):.3f})"


def plain_tiles(record: Record, names: Sequence[str], images: Images, budget: int) -> tuple[tuple[Tile, ...], str]:
    """Images with their names alone, and why they have no pictures (empty if they have).

    Args:
        record: of the run.
        names: of the images.
        images: the training set.
        budget: bytes for pictures within the page.
    """
    pictures, missing = _pictures(record, names, images, budget)
    root = _root(record)
    links = {name: "" if root is None else _address(root / name) for name in names}
    return tuple(
        Tile(name, pictures.get(name, "" if missing else links[name]), (), "", links[name]) for name in names
    ), missing


def class_tally(table: RunLabels) -> list[tuple[str, int, int, int, int, int]]:
    """By class: given labels, labels made, of these accepted, unchecked, to look at."""
    size = len(table.class_names)
    made, given = table.labels["refined"], table.labels["given"]

    def count(labels: np.ndarray, use: np.ndarray) -> np.ndarray:
        return np.bincount(labels[use & (labels != NONE)], minlength=size)

    columns = (
        count(given, np.ones(len(table), dtype=bool)),
        count(made, table.unlabelled),
        count(made, table.unlabelled & table.accepted),
        count(made, table.unlabelled & table.unchecked),
        count(made, table.unlabelled & (table.rank > 0)),
    )
    return [(name, *(int(column[number]) for column in columns)) for number, name in enumerate(table.class_names)]  # type: ignore[misc]


def _opinions(table: RunLabels, row: int) -> tuple[str, ...]:
    """What is said of an image to look at: its label, opinions that differ from it, the truth where it is known."""
    label = table.labels["refined"][row]
    others = (c for c in ("classifier", "cluster", "prototype") if table.labels[c][row] not in (NONE, label))
    return ("refined", *others, *(("truth",) if table.has("truth") else ()))


_SCORE_OF = {"refined": "refined_confidence", "classifier": "classifier_confidence", "cluster": "cluster_confidence"}
_CALLED = {"given": "your label", "looks_like": "looks like", "refined": "label"}


def _fact(table: RunLabels, row: int, fact: str) -> tuple[str, str]:
    """Name and value of what is said below an image."""
    if fact in table.scores:
        value = float(table.scores[fact][row])
        return ("cosine", f"{value:.3f}") if fact == "prototype_score" else ("confidence", percent(value))
    number = int(table.labels[fact][row])
    called = _CALLED.get(fact, fact)
    if number == NONE:
        return called, "–"
    score = table.scores[_SCORE_OF[fact]][row] if fact in _SCORE_OF else np.nan
    sure = "" if np.isnan(score) else f" ({100 * float(score):.0f} %)"
    return called, table.class_names[number] + sure


def _root(record: Record) -> Path | None:
    """The folder that the images lie in; None if they are no files, or the folder is gone."""
    root = str(record.data.get("root") or "")
    if record.data.get("data") not in FOLDERS or not root:
        return None
    path = Path(root).expanduser()
    return path.resolve() if path.is_dir() else None


def _address(path: Path) -> str:
    try:
        return path.as_uri()
    except (ValueError, UnicodeError):  # a name that no address can hold
        return ""


def _pictures(record: Record, names: Sequence[str], images: Images | None, budget: int) -> tuple[dict[str, str], str]:
    """Pictures by name, empty for files that cannot be read; and why there are none (empty if there are)."""
    if images is None or not names:
        return {}, ""
    try:
        found = images(record)
    except (ProtoConError, OSError) as error:
        return {}, f"The images could not be read, so they appear by name alone: {error}"
    if found is None:
        return {}, ""
    if len(found.shape) != 3:
        return {}, "The run learnt from embeddings, which have no picture: they appear by their id alone."
    return thumbnails(found, names, budget=budget), ""
