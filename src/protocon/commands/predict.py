"""`protocon predict`."""

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import Annotated, Any, Self, TextIO

import typer
from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from protocon.base.say import say
from protocon.commands.options import AsJson, Debug
from protocon.commands.rows import WRITERS, Row
from protocon.errors import ConfigError, RunError


def predict(
    run: Annotated[Path, typer.Argument(help="Run folder, or a model.safetensors.")],
    images: Annotated[
        list[str],
        typer.Argument(
            help="Image files, folders (searched recursively), zip archives; - reads a list from standard input."
        ),
    ],
    out: Annotated[Path | None, typer.Option("--out", help="Write FILE.csv or FILE.json.")] = None,
    file_format: Annotated[str | None, typer.Option("--format", help="csv, json or text.")] = None,
    probabilities: Annotated[
        bool, typer.Option("--probabilities", help="Write the probabilities of all classes, not only the best.")
    ] = False,
    as_json: AsJson = False,
    debug: Debug = False,  # noqa: ARG001
) -> None:
    """Label any number of images with a finished run; exit code 1 if any of them cannot be read.

    Runs on embeddings take .npy and .npz files.
    """
    from protocon.runs.find_images import listed
    from protocon.runs.predict_files import predict_rows
    from protocon.runs.trained import load_run

    chosen = _format(file_format, out, as_json=as_json)
    trained = load_run(run)
    paths = [path for name in images for path in (listed(sys.stdin) if name == "-" else (name,))]
    counts = {"labelled": 0, "unreadable": 0}
    console = Console(stderr=True)
    classes = trained.class_names if probabilities else ()
    with _output(out) as file, _Bar(console) as bar:
        found = _sorted_out(predict_rows(trained, paths, probabilities=probabilities), run)
        rows = _counted(found, counts, bar.advance)
        if file.isatty():
            rows = bar.ended_by(rows)
        WRITERS[chosen](rows, file, run=str(run), classes=classes)
    if counts["unreadable"] or out is not None or not any(counts.values()):
        where = f"; all are in {out}" if out is not None else ""
        line = f"{counts['labelled']:,} labelled, {counts['unreadable']:,} cannot be read{where}"
        say(console, line)
    if counts["unreadable"] or not counts["labelled"]:
        raise typer.Exit(1)


def _format(asked: str | None, out: Path | None, *, as_json: bool) -> str:
    """csv, json or text: as asked, by the file's suffix, or text."""
    suffix = out.suffix.lower().removeprefix(".") if out is not None else ""
    chosen = asked or ("json" if as_json and out is None else suffix) or ("text" if out is None else "csv")
    if chosen not in WRITERS:
        raise ConfigError(
            f"unknown format {chosen!r}; expected one of {', '.join(WRITERS)}, or --out FILE.csv or .json"
        )
    return chosen


@contextmanager
def _output(out: Path | None) -> Iterator[TextIO]:
    """Standard output, or a file that gets its name once it is whole. A file that exists is left as it is."""
    if out is None:
        yield sys.stdout
        return
    if out.exists():
        raise RunError(f"{out} exists already; give another name with --out, or remove it")
    aside = out.with_name(f".{out.name}.writing")
    try:
        with aside.open("w", encoding="utf-8", errors="surrogateescape", newline="") as file:
            yield file
        os.replace(aside, out)  # noqa: PTH105
    except OSError as error:
        raise RunError(f"cannot write {out}: {error.strerror or error}") from error
    finally:
        aside.unlink(missing_ok=True)


class _Bar:
    """A count that grows, on a terminal; how many there will be is not known before all folders are searched."""

    def __init__(self, console: Console) -> None:
        columns = (TextColumn("labelling"), MofNCompleteColumn(), TimeElapsedColumn())
        self._progress = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
        self._task = self._progress.add_task("labelling", total=None)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def advance(self) -> None:
        self._progress.advance(self._task)

    def ended_by(self, rows: Iterator[Row]) -> Iterator[Row]:
        """The same rows, for a terminal: the bar is wiped away once there is one, and rows show how far it is."""
        first = list(islice(rows, 1))
        self._progress.stop()
        return chain(first, rows)


def _sorted_out(rows: Iterable[Row], run: Path) -> Iterator[Row]:
    """Rows with what the run's own check says of labels as sure as theirs: accept, unchecked or review."""
    from protocon.report.outcome import triage_rule

    folder = run if run.is_dir() else run.parent
    triage = triage_rule(folder / "result.json")
    for row in rows:
        yield row if "error" in row else row | {"triage": triage(float(row["confidence"]))}


def _counted(rows: Iterable[Row], counts: dict[str, int], advance: Any) -> Iterator[Row]:
    for row in rows:
        counts["unreadable" if "error" in row else "labelled"] += 1
        advance()
        yield row
