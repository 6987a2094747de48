"""From run folders to the text of one HTML page that needs nothing but a browser."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined

from protocon.data.imageset import ImageSet
from protocon.errors import ProtoConError, RunError
from protocon.report import collect, figures, gallery
from protocon.report.figures import Picture, percent
from protocon.report.headline import Headline, headline
from protocon.report.label_table import NONE, LabelTable, read_labels, read_names
from protocon.report.record import Record, read_record
from protocon.report.thumbnails import thumbnails

Images = Callable[[Record], ImageSet | None]
"""The images of a run's training set, for thumbnails; may raise our errors where they are gone."""

DETAILED = 4
"""Of more runs than this only the comparison is drawn."""
MOST = 28
"""More lines than this cannot be told apart."""
_LISTED = 20
THUMBNAIL_BYTES = 3_000_000
"""For all pictures of the page together."""


@dataclass(frozen=True)
class Tile:
    """One image with what is said below it."""

    name: str
    picture: str
    """Data URI; empty where there is none."""
    facts: tuple[tuple[str, str], ...]
    why: str = ""


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
class RunPart:
    """All that the page says of one run."""

    record: Record
    label: str
    headline: Headline
    curves: list[Picture]
    classes: list[Picture]
    confusion: Picture | None
    galleries: list[TileGallery]
    review: tuple[Tile, ...]
    waiting: int
    """Images to look at in all."""
    pictures_missing: str
    """Why there are no thumbnails; empty where there are."""
    data: list[tuple[str, str]]
    """What the run learnt from."""
    skipped: list[tuple[str, str]]
    """The first files that were not used, and why."""
    chosen: list[tuple[str, str, str]]
    """Settings that were chosen by `auto` or asked for."""
    settings: list[tuple[str, str, str]]
    """All settings."""


def build_page(paths: Sequence[Path], *, images: Images | None = None) -> str:
    """The page of one run, or of several laid over each other.

    Args:
        paths: run folders, finished or not.
        images: gives a run's training images; without it, or for embeddings, images appear by name alone.
    """
    if not paths:
        raise RunError("no run folder was given")
    if len(paths) > MOST:
        raise RunError(f"{len(paths)} runs came; at most {MOST} can be told apart in one figure. Give fewer.")
    records = [read_record(path) for path in paths]
    labels = run_labels(paths)
    detailed = len(records) <= DETAILED
    parts = []
    for record, label in zip(records, labels, strict=True):
        table = read_labels(record.labels_file) if record.labels_file.is_file() else None
        budget = THUMBNAIL_BYTES // len(records)
        parts.append(_part(record, label, table, images=images if detailed else None, budget=budget, detailed=detailed))
    environment = Environment(
        loader=PackageLoader("protocon.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    page = environment.get_template("report.html.j2").render(
        parts=parts,
        overlays=figures.overlays(records, labels) if len(records) > 1 else [],
        detailed=detailed,
        detailed_limit=DETAILED,
        percent=percent,
    )
    # A file name that is not valid UTF-8 must not keep the page from being written.
    return page.encode("utf-8", "replace").decode()


def run_labels(paths: Sequence[Path]) -> list[str]:
    """Short names that tell the runs apart: the folder's, with as many of its parents as that takes."""
    resolved = [path.resolve() for path in paths]
    deepest = max(len(path.parts) for path in resolved)
    for depth in range(1, deepest + 1):
        labels = ["/".join(path.parts[-depth:]) for path in resolved]
        if len(set(labels)) == len(set(resolved)):
            return labels
    return [str(path) for path in resolved]


def _part(
    record: Record, label: str, table: LabelTable | None, *, images: Images | None, budget: int, detailed: bool
) -> RunPart:
    found = collect.confusion(record, table) if detailed else None
    galleries, review, missing = _galleries(record, table, images, budget) if detailed and table else ([], (), "")
    settings = collect.settings_of(record)
    return RunPart(
        record=record,
        label=label,
        headline=headline(record, table),
        curves=figures.run_curves(record) if detailed else [],
        classes=figures.class_pictures(record) if detailed else [],
        confusion=None if found is None else figures.confusion_picture(found),
        galleries=galleries,
        review=review,
        waiting=0 if table is None else int((table.rank > 0).sum()),
        pictures_missing=missing,
        data=describe_data(record),
        skipped=[
            (str(row.get("file", "")), str(row.get("reason", ""))) for row in record.data.get("skipped", [])[:_LISTED]
        ],
        chosen=[row for row in settings if row[2]],
        settings=settings,
    )


def _galleries(
    record: Record, table: LabelTable, images: Images | None, budget: int
) -> tuple[list[TileGallery], tuple[Tile, ...], str]:
    """Galleries, the list of images to look at, and why they have no pictures (empty if they have)."""
    chosen = [g for g in (gallery.prototypical(table), gallery.knew_better(table)) if g is not None]
    review = gallery.to_review(table)
    rows = np.unique(np.concatenate([review, *(strip.rows for g in chosen for strip in g.strips)]).astype(np.int64))
    names = read_names(record.labels_file, rows)
    # In the order of what matters most, should the bytes not suffice for all.
    order = [*review, *(row for g in reversed(chosen) for strip in g.strips for row in strip.rows)]
    pictures, missing = _pictures(record, [names[int(row)] for row in order], images, budget)

    def tile(row: int, facts: tuple[str, ...], why: str = "") -> Tile:
        name = names[row]
        return Tile(name, pictures.get(name, ""), tuple(_fact(table, row, fact) for fact in facts), why)

    opinions = tuple(c for c in ("refined", "classifier", "cluster", "prototype") if table.has(c))
    return (
        [
            TileGallery(
                g.title,
                g.note,
                tuple(TileStrip(s.title, tuple(tile(int(row), g.facts) for row in s.rows)) for s in g.strips),
            )
            for g in chosen
        ],
        tuple(tile(int(row), (*opinions, "truth"), gallery.reason(table, int(row))) for row in review),
        missing,
    )


_SCORE_OF = {"refined": "refined_confidence", "classifier": "classifier_confidence", "cluster": "cluster_confidence"}


def _fact(table: LabelTable, row: int, fact: str) -> tuple[str, str]:
    """Name and value of what is said below an image."""
    if fact in table.scores:
        value = float(table.scores[fact][row])
        return ("cosine", f"{value:.3f}") if fact == "prototype_score" else ("confidence", percent(value))
    number = int(table.labels[fact][row])
    if number == NONE:
        return fact, "–"
    score = table.scores[_SCORE_OF[fact]][row] if fact in _SCORE_OF else np.nan
    sure = "" if np.isnan(score) else f" ({100 * float(score):.0f} %)"
    return fact, table.class_names[number] + sure


def _pictures(
    record: Record, names: Sequence[str], images: Images | None, budget: int
) -> tuple[Mapping[str, str], str]:
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


def describe_data(record: Record) -> list[tuple[str, str]]:
    """What the run learnt from, line by line."""
    split, counts = record.split, record.data.get("counts", {})
    rows = [("data set", str(split.get("dataset") or record.setting("data", "name")))]
    if record.data.get("classes"):
        rows.append(("classes", f"{len(record.data['classes']):,}"))
    if split:
        rows.append(("training images", f"{split['size']:,}"))
        rows.append(("labelled", f"{split['labelled']:,} ({split.get('rule', '')})"))
    rows += [
        (name, f"{counts[key]:,}")
        for key, name in (("unlabelled", "unlabelled"), ("test", "test images"))
        if key in counts
    ]
    if isinstance(record.data.get("skipped"), list):
        rows.append(("files skipped", f"{len(record.data['skipped']):,}"))
    return rows
