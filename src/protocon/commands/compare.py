"""`protocon compare`."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from protocon.commands.console import emit, interruptible
from protocon.commands.data_argument import find_input
from protocon.commands.options import AsJson, Data, Debug, Labels, Overrides, Recipe, Root


def compare(
    overrides: Overrides = None,
    data: Data = None,
    root: Root = None,
    labels: Labels = None,
    methods: Annotated[
        str | None, typer.Option("--methods", help="a,b,c; default: every method and reference.")
    ] = None,
    labels_per_class: Annotated[str, typer.Option("--labels-per-class", help="Labels of each class.")] = "2,4,8",
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="How many seeds: 0, 1, 2, …")] = 5,
    recipe: Recipe = None,
    out: Annotated[Path | None, typer.Option("--out", help="Its folder; default: runs/compare-DATA.")] = None,
    workers: Annotated[
        int | None, typer.Option("--workers", min=1, help="Runs at a time; default: one a core.")
    ] = None,
    as_json: AsJson = False,
    debug: Debug = False,  # noqa: ARG001
) -> None:
    """Train methods on the same labels, over label counts and seeds, and tabulate them.

    A setting holds for every method that has it; METHOD.key=value for one.
    The same command goes on where it was stopped. Exit code 1 if a run failed.
    """
    from protocon.compare.grid import compare as run_comparison
    from protocon.compare.request import build_request, names_in, numbers_in
    from protocon.compare.tables import show

    source = find_input(overrides, data=data, root=root, labels=labels)
    request = build_request(
        methods=names_in(methods or ""),
        labels_per_class=numbers_in(labels_per_class),
        seeds=seeds,
        data=source.name,
        root=source.root,
        labels=labels,
        recipe=recipe,
        overrides=source.overrides,
    )
    console = Console(stderr=True)
    if source.said is not None:
        console.print(source.said, markup=False, highlight=False, soft_wrap=True)
    with interruptible(console, "the same command goes on where this one stopped"):
        comparison = run_comparison(request, out=out, workers=workers, console=console)
    emit(as_json, comparison.content(), lambda screen: show(comparison, screen))
    if comparison.failed:
        raise typer.Exit(1)
