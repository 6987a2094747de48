"""The command line: which commands there are, and how our errors end them.

All modules of commands are imported here, so they import nothing large themselves: `--help` answers at once.
"""

import sys
from typing import Annotated

import typer
from rich.console import Console

import protocon
from protocon.base.say import say
from protocon.commands.audit import audit
from protocon.commands.claims import claims
from protocon.commands.compare import compare
from protocon.commands.data import data
from protocon.commands.demo import demo
from protocon.commands.evaluate import evaluate
from protocon.commands.export import export
from protocon.commands.label import label
from protocon.commands.pick import pick
from protocon.commands.predict import predict
from protocon.commands.pretrain import pretrain
from protocon.commands.recipes import recipes
from protocon.commands.report import report
from protocon.commands.reproduce import reproduce
from protocon.commands.split import split
from protocon.commands.train import train
from protocon.commands.usage import Command
from protocon.errors import ProtoConError

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)
_COMMANDS = (
    *(train, pretrain, label, pick, demo, compare, evaluate, predict),
    *(report, audit, export, split, recipes, reproduce),
)
for command in _COMMANDS:
    app.command(cls=Command)(command)
app.add_typer(data, name="data")
app.add_typer(claims, name="claims")


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"protocon {protocon.__version__}")
        raise typer.Exit


@app.callback()
def top(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and stop.", is_eager=True, callback=_show_version)
    ] = False,
) -> None:
    """Label-scarce semi-supervised image classification: ProtoCon and its baselines."""


def main() -> None:
    """Run the command line: exit code 1 for our errors, 2 for wrong usage."""
    try:
        app(prog_name="protocon")  # also for `python -m protocon`, so that shells complete one name
    except ProtoConError as error:
        if "--debug" in sys.argv:
            raise
        say(Console(stderr=True), f"error: {error}")
        sys.exit(1)
