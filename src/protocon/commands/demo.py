"""`protocon demo`."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from protocon.commands.console import emit
from protocon.commands.options import AsJson, Debug


def demo(
    out: Annotated[Path, typer.Option("--out", help="Folder that holds run folders.", rich_help_panel="Output")] = Path(
        "runs"
    ),
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the labels and of everything else.")] = 0,
    as_json: AsJson = False,
    debug: Debug = False,  # noqa: ARG001
) -> None:
    """Learn ten digits from twenty labels: the labels alone, then ProtoCon on the same ones."""
    from protocon.engine.run import fit
    from protocon.settings.config import build_config

    console = Console(stderr=True)
    results = {}
    for method in ("supervised", "protocon"):
        settings = {
            "method_name": method,
            "data": {"name": "digits", "labels_per_class": 2},
            "optim": {"epochs": 50},  # half of what `train` takes, so that slow machines finish in minutes too
            "run": {"seed": seed},
        }
        results[method] = fit(build_config(settings=settings), out=out, console=console)

    def show(screen: Console) -> None:
        table = Table(title="Digits, 20 labels, 400 test images", title_justify="left")
        for heading in ("method", "test accuracy", "seconds", "run folder"):
            table.add_column(heading, overflow="fold")
        for method, result in results.items():
            table.add_row(method, f"{100 * result['test_accuracy']:.1f} %", f"{result['seconds']:.0f}", result["run"])
        screen.print(table)

    emit(as_json, results, show)
