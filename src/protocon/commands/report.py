"""`protocon report`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from protocon.commands.console import emit
from protocon.commands.options import AsJson, Debug

if TYPE_CHECKING:
    from protocon.data.imageset import ImageSet
    from protocon.report.record import Record


def report(
    runs: Annotated[list[Path], typer.Argument(help="Run folders, finished or not; several are laid over each other.")],
    out: Annotated[
        Path | None, typer.Option("--out", help="HTML file to write; by default report.html in the (first) run folder.")
    ] = None,
    as_json: AsJson = False,
    debug: Debug = False,  # noqa: ARG001
) -> None:
    """Draw runs on one HTML page: result, curves, classes, clusters, images to look at."""
    from protocon.durable import write_bytes
    from protocon.report.page import build_page

    page = build_page(runs, images=_images)
    file = out or (runs[0] / ("report.html" if len(runs) == 1 else "comparison.html"))
    file.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(file, page.encode())
    emit(
        as_json,
        {"report": str(file), "runs": [str(run) for run in runs], "bytes": len(page.encode())},
        lambda console: console.print(f"report: {file}", markup=False, highlight=False, soft_wrap=True),
    )


def _images(record: "Record") -> "ImageSet | None":
    """The run's training images, as its settings find them."""
    from protocon.config import validate
    from protocon.engine.session import load_data

    return load_data(validate(record.asked)).train
