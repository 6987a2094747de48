"""`protocon compare`."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from protocon.base.say import say
from protocon.commands.completion import compared
from protocon.commands.console import emit, interruptible
from protocon.commands.options import DATA, NETWORK, TRAINING, AsJson, ChosenData, Debug, takes

_GRID = "Comparison"
# The grid sets labels, seed and method itself, and a time budget would give quick methods more steps than slow ones.
_NOT_HERE = ("--labels-per-class", "--labels-percent", "--seed", "--method", "--time-budget")


@takes(DATA, NETWORK, TRAINING, without=_NOT_HERE)
def compare(
    chosen: ChosenData,
    methods: Annotated[
        str | None,
        typer.Option(
            "--methods",
            help="a,b,c+key=value; default: every method and reference.",
            rich_help_panel=_GRID,
            show_default=False,
            autocompletion=compared,
        ),
    ] = None,
    labels_per_class: Annotated[
        str, typer.Option("--labels-per-class", help="Labels per class.", rich_help_panel=_GRID)
    ] = "2,4,8",
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="How many seeds: 0, 1, 2, …", rich_help_panel=_GRID)] = 5,
    workers: Annotated[
        int | None,
        typer.Option(
            "--workers",
            min=1,
            help="Runs at a time; default: one per core.",
            rich_help_panel=_GRID,
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            help="Folder of the comparison; default: runs/compare-DATA.",
            rich_help_panel="Output",
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
    debug: Debug = False,  # noqa: ARG001
) -> None:
    """Train methods on the same labels, over label counts and seeds, and tabulate them.

    A setting applies to every method that has it; METHOD.key=value to one. METHOD+key=value is a row of its own.
    The same command continues where it was stopped. Exit code 1 if a run failed.
    """
    from protocon.compare.grid import compare as run_comparison
    from protocon.compare.request import build_request, names_in, numbers_in
    from protocon.compare.tables import show

    inputs = chosen.resolve()
    request = build_request(
        methods=names_in(methods or ""),
        labels_per_class=numbers_in(labels_per_class),
        seeds=seeds,
        settings=inputs.settings,
        recipe=inputs.recipe,
        overrides=inputs.overrides,
    )
    console = Console(stderr=True)
    for line in inputs.lines():
        say(console, line)
    with interruptible(console, "the same command continues where this one stopped"):
        comparison = run_comparison(request, out=out, workers=workers, console=console)
    emit(as_json, comparison.content(), lambda screen: show(comparison, screen))
    if comparison.failed:
        raise typer.Exit(1)
