"""`protocon recipes`."""

from typing import Annotated

import typer
from rich.console import Console

from protocon.commands.console import emit
from protocon.commands.options import AsJson, Debug
from protocon.settings.config import build_config, to_yaml
from protocon.settings.recipe import recipe_names, recipe_text


def recipes(
    name: Annotated[str | None, typer.Argument(help="Show this recipe in full.")] = None,
    as_json: AsJson = False,
    debug: Debug = False,  # noqa: ARG001
) -> None:
    """List the recipes that ship with the package, or show one."""
    if name is not None:
        config = build_config(recipe=name)
        emit(
            as_json,
            config.model_dump(mode="json"),
            lambda console: console.print(to_yaml(config), highlight=False),
        )
        return
    about = {recipe: recipe_text(recipe).splitlines()[0].lstrip("# ") for recipe in recipe_names()}

    def show(console: Console) -> None:
        for recipe, text in about.items():
            console.print(f"{recipe}: {text}", markup=False, highlight=False)

    emit(as_json, {"recipes": about}, show)
