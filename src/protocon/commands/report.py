"""`protocon report`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from protocon.base.say import say
from protocon.commands.console import emit
from protocon.commands.options import AsJson, Debug
from protocon.errors import ConfigError, RunError
from protocon.runs import layout

if TYPE_CHECKING:
    from rich.console import Console

    from protocon.data.imageset import ImageSet
    from protocon.report.record import Record


def report(
    runs: Annotated[list[Path], typer.Argument(help="Run folders, finished or not; several are drawn together.")],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", help="HTML file; by default report.html in the run, or comparison.html in the first of several."
        ),
    ] = None,
    as_json: AsJson = False,
    debug: Debug = False,  # noqa: ARG001
) -> None:
    """Draw runs on one HTML page: result, curves, classes, clusters, images to look at."""
    from protocon.base.atomic import write_bytes
    from protocon.report.page import build_page, run_labels
    from protocon.report.paired import comparison_lines
    from protocon.report.record import read_record

    page = build_page(runs, images=run_images)
    file = out or (runs[0] / (layout.REPORT if len(runs) == 1 else "comparison.html"))
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunError(f"cannot create the folder {file.parent}: {error.strerror or error}") from error
    write_bytes(file, page.encode())
    said = comparison_lines([read_record(run) for run in runs], run_labels(runs))
    content = {"report": str(file), "runs": [str(run) for run in runs], "bytes": len(page.encode()), "comparison": said}

    def show(console: "Console") -> None:
        for line in (*said, f"report: {file}"):
            say(console, line)

    emit(as_json, content, show)


def run_images(record: "Record") -> "ImageSet | None":
    """The run's training images, as its settings find them; files are decoded only where they are shown."""
    from protocon.runs.run_data import load_data
    from protocon.settings.config import validate

    config = validate(record.asked)
    lazy = config.data.model_copy(update={"storage": "stream", "bad_files": "error"})
    try:
        return load_data(config.model_copy(update={"data": lazy})).train
    except ConfigError:  # a source whose images are no files
        return load_data(config).train
