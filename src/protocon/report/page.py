"""From run folders to the text of one HTML page that needs nothing but a browser."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

from protocon.errors import RunError
from protocon.report import collect, figures, next_commands
from protocon.report.figures import DrawnFigure, percent
from protocon.report.headline import Headline, headline
from protocon.report.label_table import RunLabels, read_labels
from protocon.report.paired import comparison_lines
from protocon.report.record import Record, read_record
from protocon.report.tiles import Images, ShownTiles, choose_images, class_tally

DETAILED = 4
"""Of more runs than this only the comparison is drawn."""
MAX_RUNS = 28
"""More lines than this cannot be told apart."""
_LISTED = 20
THUMBNAIL_BYTES = 2_500_000
"""For all pictures of the page together."""


@dataclass(frozen=True)
class RunPart:
    """All that the page says of one run."""

    record: Record
    label: str
    headline: Headline
    curves: list[DrawnFigure]
    classes: list[DrawnFigure]
    confusion: DrawnFigure | None
    shown: ShownTiles
    """The images."""
    waiting: int
    """Unlabelled images to look at in all."""
    train_again: str
    """The command that trains with the corrected table; empty where there is none."""
    sort: str
    """The command that sorts accepted images into folders; empty where none is accepted."""
    tally: list[tuple[str, int, int, int, int, int]]
    """Class, given labels, labels made, of these accepted, unchecked, to look at."""
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
    if len(paths) > MAX_RUNS:
        raise RunError(f"{len(paths)} runs came; at most {MAX_RUNS} can be told apart in one figure. Give fewer.")
    records = [read_record(path) for path in paths]
    labels = run_labels(paths)
    detailed = len(records) <= DETAILED
    parts = []
    for record, label in zip(records, labels, strict=True):
        table = read_labels(record.labels_file) if record.labels_file.is_file() else None
        budget = THUMBNAIL_BYTES // len(records)
        parts.append(_part(record, label, table, images=images if detailed else None, budget=budget, detailed=detailed))
    page = (
        templates()
        .get_template("report.html.j2")
        .render(
            parts=parts,
            overlays=figures.overlays(records, labels) if len(records) > 1 else [],
            detailed=detailed,
            detailed_limit=DETAILED,
            percent=percent,
            cautions=comparison_lines(records, labels),
        )
    )
    # A file name that is not valid UTF-8 must not keep the page from being written.
    return page.encode("utf-8", "replace").decode()


def templates() -> Environment:
    """The templates of our pages; text is escaped, and a name that is not given is an error."""
    return Environment(
        loader=PackageLoader("protocon.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


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
    record: Record, label: str, table: RunLabels | None, *, images: Images | None, budget: int, detailed: bool
) -> RunPart:
    found = collect.confusion(record, table) if detailed else None
    shown = choose_images(record, table, images, budget) if detailed and table else ShownTiles()
    settings = collect.settings_of(record)
    return RunPart(
        record=record,
        label=label,
        headline=headline(record, table),
        curves=figures.run_curves(record) if detailed else [],
        classes=figures.class_pictures(record) if detailed else [],
        confusion=None if found is None else figures.confusion_picture(found),
        shown=shown,
        waiting=0 if table is None else int(((table.rank > 0) & table.unlabelled).sum()),
        train_again=next_commands.train_again(record),
        sort=next_commands.sort_into_folders(record) if table is not None and table.accepted.any() else "",
        tally=class_tally(table) if detailed and table else [],
        data=describe_data(record),
        skipped=[
            (str(row.get("file", "")), str(row.get("reason", ""))) for row in record.data.get("skipped", [])[:_LISTED]
        ],
        chosen=[row for row in settings if row[2]],
        settings=settings,
    )


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
