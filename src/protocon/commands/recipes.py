"""`protocon recipes`."""

from typing import Annotated

import typer
from rich.console import Console

from protocon.commands.completion import recipes as recipes_that_start
from protocon.commands.console import emit, say
from protocon.commands.options import AsJson, Debug


def recipes(
    name: Annotated[
        str | None, typer.Argument(help="Show this recipe in full.", autocompletion=recipes_that_start)
    ] = None,
    as_json: AsJson = False,
    debug: Debug = False,  # noqa: ARG001
) -> None:
    """List the recipes that ship with the package, or show one."""
    if name is not None:
        from protocon.settings.config import build_config, to_yaml

        config = build_config(recipe=name)
        emit(
            as_json,
            config.model_dump(mode="json"),
            lambda console: console.print(to_yaml(config), highlight=False),
        )
        return
    from protocon.settings.recipe import recipe_names, recipe_title

    about = {recipe: recipe_title(recipe) for recipe in recipe_names()}

    def show(console: Console) -> None:
        for recipe, text in about.items():
            say(console, f"{recipe}: {text}")

    emit(as_json, {"recipes": about}, show)
