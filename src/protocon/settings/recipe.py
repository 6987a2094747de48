"""Settings as text: YAML that can hold nothing but plain values, and recipes that extend each other."""

from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any

import yaml

from protocon.errors import ConfigError, unknown_name
from protocon.paper.paper_cells import paper_cells

_MAX_DEPTH = 20
_MAX_TEXT = 2**20


def recipe_names() -> list[str]:
    """Recipes that ship with the package."""
    folder = resources.files("protocon") / "recipes"
    return sorted(item.name.removesuffix(".yaml") for item in folder.iterdir() if item.name.endswith(".yaml"))


def recipe_text(name: str) -> str:
    """The YAML text of a recipe that ships with the package."""
    if name not in recipe_names():
        raise ConfigError(unknown_name("recipe", name, recipe_names()))
    return (resources.files("protocon") / "recipes" / f"{name}.yaml").read_text(encoding="utf-8")


def recipe_title(name: str) -> str:
    """What a recipe is, in a line: the comment that its file starts with."""
    return recipe_text(name).splitlines()[0].lstrip("# ")


def read_recipe(name: str) -> dict[str, Any]:
    """Settings of a recipe by its name, of a cell of the paper's tables, or of any YAML file by its path.

    `extends: NAME` in it starts from that recipe.
    """
    if name in paper_cells():
        values = paper_cells()[name].recipe()
    elif name.endswith((".yaml", ".yml")):
        path = Path(name)
        if not path.is_file():
            raise ConfigError(f"config file {name} does not exist")
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"config file {name} cannot be read: {error}") from error
        values = parse_yaml(text, name)
    else:
        values = parse_yaml(recipe_text(name), name)
    base = values.pop("extends", None)
    if base is None:
        return values
    if base == name or base not in recipe_names():
        raise ConfigError(f"{name} extends {base!r}, which is no recipe; expected one of {recipe_names()}")
    return merge(read_recipe(base), values)


def merge(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Nested settings with changes put over them, section by section."""
    merged = dict(base)
    if "method_name" in changes and changes["method_name"] != base.get("method_name", "protocon"):
        merged.pop("method", None)  # settings of another method do not carry over
    for section, content in changes.items():
        given = merged.get(section)
        if isinstance(given, Mapping) and isinstance(content, Mapping):
            content = {**given, **content}
        merged[section] = content
    return merged


class PlainLoader(yaml.SafeLoader):
    """Plain values only. No aliases: ten lines of them can stand for a billion values. No bottomless nesting."""

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self._depth = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        """A node as SafeLoader has it, unless it is an alias or too deep."""
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("aliases (*name) are not used in settings; write the value out")
        if self._depth >= _MAX_DEPTH:
            raise yaml.YAMLError(f"settings are nested {_MAX_DEPTH} deep; they have two levels, section and key")
        self._depth += 1
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node


def parse_yaml(text: str, origin: str) -> dict[str, Any]:
    """A mapping from YAML text, or a clear error."""
    if len(text) > _MAX_TEXT:
        raise ConfigError(f"{origin} has {len(text):,} characters; settings have at most {_MAX_TEXT:,}")
    try:
        content = yaml.load(text, PlainLoader)  # a SafeLoader
    except (yaml.YAMLError, ValueError, RecursionError, OverflowError) as error:
        raise ConfigError(f"{origin} is not valid YAML: {error}") from error
    if content is None:
        return {}
    if not isinstance(content, dict) or not all(isinstance(key, str) for key in content):
        raise ConfigError(f"{origin} must hold settings as `section: {{key: value}}`, got {type(content).__name__}")
    return content
