"""`protocon reproduce`."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from protocon.base.say import say
from protocon.commands.console import emit, interruptible
from protocon.commands.options import AsJson, Debug

if TYPE_CHECKING:
    from protocon.reproduce.progress_table import Measured


def reproduce(
    table: Annotated[str, typer.Argument(help="table1, table2, table3, moderate or ablations.")],
    settings: Annotated[
        list[str] | None,
        typer.Argument(metavar="[key=value]…", help="Changes of the recipes; the table says so.", show_default=False),
    ] = None,
    cells: Annotated[
        str | None,
        typer.Option("--cells", help="a,b,c with *: cifar10-40/protocon, cifar10-*/*.", show_default=False),
    ] = None,
    root: Annotated[
        list[str] | None,
        typer.Option("--root", metavar="DATA=FOLDER", help="Where a data set is; may be repeated.", show_default=False),
    ] = None,
    weights: Annotated[
        list[str] | None,
        typer.Option(
            "--weights", metavar="ROW=FILE", help="Pre-trained encoder of a row; may be repeated.", show_default=False
        ),
    ] = None,
    seeds: Annotated[
        int | None, typer.Option("--seeds", min=1, help="Fewer runs than the paper's.", show_default=False)
    ] = None,
    only_list: Annotated[bool, typer.Option("--list", help="Show the table as it stands; train nothing.")] = False,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder; default: runs/reproduce-TABLE.", show_default=False)
    ] = None,
    as_json: AsJson = False,
    debug: Debug = False,  # noqa: ARG001
) -> None:
    """Train the cells of a table of the paper by their exact recipes, and fill the table beside the paper's figures.

    The same command continues where it was stopped. Several processes: torchrun … -m protocon reproduce …
    """
    from protocon.base import distributed
    from protocon.data.registry import DATASET_NAMES
    from protocon.paper.paper_rows import IMAGENET_ROWS
    from protocon.reproduce.reproduce_run import Reproduction

    wanted = Reproduction(
        table=table,
        out=out or Path("runs") / f"reproduce-{table}",
        cells=[part.strip() for part in (cells or "").split(",") if part.strip()],
        roots=_named("--root", root or [], DATASET_NAMES, "cifar10=data/cifar10"),
        weights=_named("--weights", weights or [], IMAGENET_ROWS, "protocon-eman=moco.pth"),
        seeds=seeds,
        overrides=settings or [],
    )
    console = Console(stderr=True)

    def progress(found: "Sequence[Measured]") -> None:
        done = [one for one in found if one.accuracies]
        if distributed.rank() == 0:
            say(console, f"{len(done)} of {len(found)} cells have results; the table is in {wanted.out / 'table.md'}")

    if only_list:
        found = [wanted.measured(cell) for cell in wanted.chosen()]
    else:
        with interruptible(console, "the same command continues where this one stopped"):
            found = wanted.run(console, progress)
    if distributed.rank() == 0:  # of several processes, one speaks
        emit(as_json, {"table": table, "cells": [one.content() for one in found]}, lambda screen: _show(found, screen))


def _show(found: "Sequence[Measured]", console: Console) -> None:
    table = Table()
    for heading in ("cell", "paper", "measured", "difference", "within ±", "state"):
        table.add_column(heading, overflow="fold")
    for one in found:
        table.add_row(*one.row())
    console.print(table)


def _named(option: str, texts: list[str], known: Iterable[str], example: str) -> dict[str, Path]:
    """Files or folders by name, from `NAME=PATH`."""
    from protocon.errors import ConfigError, unknown_name

    found = {}
    for text in texts:
        name, separator, path = text.partition("=")
        if not separator or not path:
            raise ConfigError(f"{option} {text!r} came; expected NAME=PATH, such as {example}")
        if name not in known:
            raise ConfigError(unknown_name(f"name in {option}", name, known))
        found[name] = Path(path)
    return found
