"""The command line: which commands there are, and how our errors end them."""

import sys

import typer
from rich.console import Console

from protocon.commands.compare import compare
from protocon.commands.data import data
from protocon.commands.demo import demo
from protocon.commands.evaluate import evaluate
from protocon.commands.export import export
from protocon.commands.predict import predict
from protocon.commands.recipes import recipes
from protocon.commands.report import report
from protocon.commands.split import split
from protocon.commands.train import train
from protocon.errors import ProtoConError

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Label-scarce semi-supervised image classification: ProtoCon and its baselines.",
)
for command in (train, demo, compare, evaluate, predict, report, export, split, recipes):
    app.command()(command)
app.add_typer(data, name="data")


def main() -> None:
    """Run the command line: exit code 1 for our errors, 2 for wrong usage."""
    try:
        app()
    except ProtoConError as error:
        if "--debug" in sys.argv:
            raise
        Console(stderr=True).print(f"error: {error}", markup=False, highlight=False, soft_wrap=True)
        sys.exit(1)
