"""`protocon evaluate`."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from protocon.commands.console import emit
from protocon.commands.options import AsJson, Debug


def evaluate(
    run: Annotated[Path, typer.Argument(help="Run folder.")],
    as_json: AsJson = False,
    debug: Debug = False,  # noqa: ARG001
) -> None:
    """Accuracy of a finished run on its test set."""
    from protocon.runs.trained import evaluate_run, load_run

    result = evaluate_run(load_run(run))

    def show(console: Console) -> None:
        console.print(f"test accuracy {100 * result['test_accuracy']:.2f} % on {result['test_images']} images")
        for label, value in result["accuracy_by_class"].items():
            console.print(f"  {label}: {100 * value:.1f} %", markup=False, highlight=False)

    emit(as_json, {"run": str(run), **result}, show)
