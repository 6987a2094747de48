"""Options that several commands share, and the config they make."""

from pathlib import Path
from typing import Annotated, Any

import typer

from protocon.config import RunConfig, build_config

Data = Annotated[str | None, typer.Option("--data", help="Name of a data set.")]
Root = Annotated[Path | None, typer.Option("--root", help="Folder or file that holds the data.")]
Labels = Annotated[Path | None, typer.Option("--labels", help="CSV with file,label rows.")]
PerClass = Annotated[int | None, typer.Option("--labels-per-class", min=1, help="Labels drawn of each class.")]
Percent = Annotated[float | None, typer.Option("--labels-percent", help="Share of labels drawn, in percent.")]
Seed = Annotated[int | None, typer.Option("--seed", min=0, help="Seed of the split and of everything else.")]
Recipe = Annotated[str | None, typer.Option("--recipe", help="A recipe's name, or a YAML file.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout; progress goes to stderr.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show tracebacks of errors.")]
Overrides = Annotated[list[str] | None, typer.Argument(help="Settings as key=value.", show_default=False)]


def config_from(
    *,
    data: str | None,
    root: Path | None,
    labels: Path | None,
    labels_per_class: int | None,
    labels_percent: float | None,
    method: str | None,
    seed: int | None,
    recipe: str | None,
    overrides: list[str] | None,
) -> RunConfig:
    """The config that a command's options and `key=value` texts ask for."""
    chosen: dict[str, Any] = {
        "name": data,
        "root": root,
        "labels": labels,
        "labels_per_class": labels_per_class,
        "labels_percent": labels_percent,
    }
    settings: dict[str, Any] = {
        "data": {key: value for key, value in chosen.items() if value is not None},
        "run": {} if seed is None else {"seed": seed},
    }
    if method is not None:
        settings["method_name"] = method
    return build_config(recipe=recipe, settings=settings, overrides=overrides or ())
