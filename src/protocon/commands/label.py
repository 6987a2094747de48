"""`protocon label`."""

import contextlib
import shlex
import webbrowser
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from protocon.base.say import say
from protocon.commands.options import Debug
from protocon.errors import ConfigError

_INSTALL = "pip install 'protocon[label]'"


def label(
    folder: Annotated[Path, typer.Argument(help="Folder of images.")],
    settings: Annotated[
        list[str] | None, typer.Argument(help="Settings of the encoder as key=value, as `train` takes them.")
    ] = None,
    classes: Annotated[str | None, typer.Option("--classes", help="Classes to begin with, such as cat,dog.")] = None,
    who: Annotated[str | None, typer.Option("--who", help="Who answers: a name for the log.")] = None,
    out: Annotated[Path, typer.Option("--out", help="Folder that holds full runs.")] = Path("runs"),
    cache: Annotated[Path | None, typer.Option("--cache", help="Folder that holds features.")] = None,
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="0: any that is free.")] = 0,
    host: Annotated[str, typer.Option("--host", help="Address to listen on; only this computer by default.")] = (
        "127.0.0.1"
    ),
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page in a browser.")] = True,
    debug: Debug = False,  # noqa: ARG001
) -> None:
    """Label images in the browser, from no labels at all, with a model that learns along.

    Answers are kept in the folder: labels.jsonl has every one, labels.csv what they come to.
    """
    try:
        from protocon.labeller.server import LOOPBACK, Labeller
    except ModuleNotFoundError as error:
        if error.name not in ("fastapi", "uvicorn", "starlette"):
            raise
        raise ConfigError(f"`protocon label` needs {error.name}, which is not installed: {_INSTALL}") from error
    console = Console(stderr=True)
    names = [name for name in (classes or "").split(",") if name.strip()]
    labeller = Labeller(
        folder, who=who, host=host, port=port, out=out, settings=settings or (), classes=names, cache=cache
    )
    if host != LOOPBACK:
        say(
            console,
            f"listening on {host}: whoever can reach this computer and has the address can see and label the images; "
            "the connection is not encrypted",
        )
    count = len(labeller.desk.photos)
    console.print(f"{count:,} images; Ctrl-C ends, all answers are saved as they come", highlight=False, markup=False)
    typer.echo(labeller.url)
    if browser:
        with contextlib.suppress(webbrowser.Error):
            webbrowser.open(labeller.url)
    labeller.serve()
    say(console, f"answers: {labeller.log.path}; labels: {labeller.desk.labels.path}")
    say(console, f"To train on them:\n  {shlex.join(['protocon', 'train', str(folder)])}")
