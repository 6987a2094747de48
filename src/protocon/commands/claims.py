"""`protocon claims` and `protocon claims run`."""

import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from protocon.base.say import say
from protocon.commands.console import emit, interruptible
from protocon.commands.options import AsJson, Debug
from protocon.commands.usage import Command

claims = typer.Typer(help="The paper's claims as experiments.", invoke_without_command=True)


@claims.callback()
def listing(context: typer.Context, as_json: AsJson = False) -> None:
    """The paper's claims as experiments: `protocon claims` lists them, `protocon claims run ID…` tests them."""
    if context.invoked_subcommand is not None:
        return
    from protocon.claims.table import CLAIMS

    def show(console: Console) -> None:
        for number, claim in enumerate(CLAIMS.values(), 1):
            say(console, f"{number:2} {claim.id}: {claim.says}")
            say(console, f"   Paper: {claim.place}.")

    content = {
        claim.id: {"number": number, "says": claim.says, "place": claim.place, "test": claim.test}
        for number, claim in enumerate(CLAIMS.values(), 1)
    }
    emit(as_json, {"claims": content}, show)


@claims.command("run", cls=Command)
def run(
    names: Annotated[list[str], typer.Argument(metavar="ID…", help="Names or numbers of claims, or all.")],
    data: Annotated[str, typer.Option("--data", help="digits or fashion-mnist.")] = "digits",
    root: Annotated[Path | None, typer.Option("--root", help="Folder with the data.", show_default=False)] = None,
    seeds: Annotated[
        int | None, typer.Option("--seeds", min=2, help="How many seeds: 0, 1, 2, …", show_default=False)
    ] = None,
    epochs: Annotated[
        int | None, typer.Option("--epochs", min=3, help="Passes over the data.", show_default=False)
    ] = None,
    cells: Annotated[
        Path | None,
        typer.Option("--cells", help="cells.csv of a comparison instead of new runs.", show_default=False),
    ] = None,
    workers: Annotated[int, typer.Option("--workers", min=1, help="Runs at a time.")] = 1,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder of the runs; default: runs/claims-DATA.", show_default=False)
    ] = None,
    results: Annotated[
        Path | None,
        typer.Option("--results", help="Folder for results; default: OUT/results.", show_default=False),
    ] = None,
    as_json: AsJson = False,
    debug: Debug = False,  # noqa: ARG001
) -> None:
    """Test claims: train what is missing, print each effect with its 95 % interval, and the verdict.

    Claims share runs. The same command continues where it was stopped.
    """
    from protocon.claims.campaign import Campaign
    from protocon.claims.claims_page import show_result
    from protocon.claims.field import field_named

    campaign = Campaign(
        field=field_named(data, seeds=seeds, epochs=epochs, root=root),
        out=out or Path("runs") / f"claims-{data}",
        results=results,
        workers=workers,
        cells=cells,
        command="protocon " + shlex.join(sys.argv[1:]),
    )
    console = Console(stderr=True)
    found: list[dict[str, Any]] = []
    with interruptible(console, "the same command continues where this one stopped"):
        for result in campaign.run(names, console):
            found.append(result)
            if not as_json:
                show_result(result, Console())
    if as_json:
        emit(True, {"results": found}, lambda _console: None)
