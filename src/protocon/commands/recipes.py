"""`protocon recipes`."""

from typing import Annotated, Any

import typer
from rich.console import Console

from protocon.base.say import say
from protocon.commands.completion import recipes as recipes_that_start
from protocon.commands.console import emit
from protocon.commands.options import AsJson, Debug
from protocon.errors import ConfigError

_SHOW = "show"


def recipes(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[show] [NAME]",
            help="Show this recipe, or this cell of the paper's tables, such as table1/cifar10-40/protocon.",
            autocompletion=recipes_that_start,
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
    debug: Debug = False,  # noqa: ARG001
) -> None:
    """List the recipes that ship with the package, or show one; with `show`, also what it takes on this machine."""
    names = [word for word in words or [] if word != _SHOW]
    if len(names) > 1:
        raise ConfigError(f"{' '.join(names)} came; expected one recipe")
    if not names:
        _list(as_json)
    elif (words or [])[0] == _SHOW:
        _show_whole(names[0], as_json)
    else:
        _show_settings(names[0], as_json)


def _list(as_json: bool) -> None:
    from protocon.paper.paper_cells import TABLES, paper_cells
    from protocon.settings.recipe import recipe_names, recipe_title

    about = {recipe: recipe_title(recipe) for recipe in recipe_names()}
    cells = list(paper_cells())

    def show(console: Console) -> None:
        for recipe, text in about.items():
            say(console, f"{recipe}: {text}")
        for table, content in TABLES.items():
            rows, columns = ", ".join(content.reported), ", ".join(content.columns)
            say(console, f"{table}/COLUMN/ROW: {content.title}. Columns: {columns}. Rows: {rows}")

    emit(as_json, {"recipes": about, "cells": cells}, show)


def _show_settings(name: str, as_json: bool) -> None:
    from protocon.settings.config import build_config, to_yaml

    config = build_config(recipe=name)
    show = lambda console: console.print(to_yaml(config), highlight=False)  # noqa: E731
    emit(as_json, config.model_dump(mode="json"), show)


def _show_whole(name: str, as_json: bool) -> None:
    """Settings without `auto`, what the paper reports, and what a run would take here."""
    from protocon.reproduce.recipe_page import describe_recipe

    content: dict[str, Any] = describe_recipe(name)

    def show(console: Console) -> None:
        console.print(content["settings_yaml"], markup=False, highlight=False)
        for line in content["lines"]:
            say(console, line)

    emit(as_json, content, show)
