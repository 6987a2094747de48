"""`protocon predict`."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from protocon.commands.console import emit
from protocon.commands.options import AsJson, Debug


def predict(
    run: Annotated[Path, typer.Argument(help="Run folder.")],
    images: Annotated[list[Path], typer.Argument(help="Image files.")],
    as_json: AsJson = False,
    debug: Debug = False,  # noqa: ARG001
) -> None:
    """Label image files with a finished run; exit code 1 if any of them could not be read."""
    from protocon.engine.runs import load_run

    rows = load_run(run).predict_files(images)

    def show(console: Console) -> None:
        for row in rows:
            said = row.get("error") or f"{row['label']}  {row['confidence']:.3f}"
            console.print(f"{row['file']}: {said}", markup=False, highlight=False, soft_wrap=True)

    emit(as_json, {"run": str(run), "predictions": rows}, show)
    if any("error" in row for row in rows):
        raise typer.Exit(1)
