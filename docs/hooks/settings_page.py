"""MkDocs hook: a reference of all settings, generated from the classes that validate them."""

import ast
import inspect
import textwrap
import types
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from pydantic import BaseModel
from pydantic.fields import FieldInfo

PAGE = "settings.md"
_NAMES = {int: "integer", float: "number", bool: "true or false", str: "text", Path: "path", type(None): "null"}
_BOUNDS = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<"}
_INTRO = """\
# Settings

Every setting of a run with its type, its default and its meaning. This page is generated from the classes that validate
the settings, so it is complete.

On the command line a setting is `section.key=value`, or `key=value` where only one section has that key, such as
`protocon train --data digits optim.lr=0.1 alpha=0.7`. In a recipe or in `build_config(settings=…)` settings are nested
by section; those of the chosen method are in the section `method`. `auto` means that the value follows from the data;
`protocon train … --dry-run` shows what it becomes and why. For what the methods do, see [the method](method.md) and
[the other methods](baselines.md).
"""


@dataclass(frozen=True)
class Setting:
    """One row of the reference."""

    key: str
    type: str
    default: str
    meaning: str


def field_docs(model: type[BaseModel]) -> dict[str, str]:
    """The text under each field of a class, fields of its bases included."""
    found: dict[str, str] = {}
    for owner in reversed(model.__mro__):
        if not issubclass(owner, BaseModel) or owner is BaseModel:
            continue
        (tree,) = ast.parse(textwrap.dedent(inspect.getsource(owner))).body
        assert isinstance(tree, ast.ClassDef)
        for field, text in zip(tree.body, tree.body[1:], strict=False):
            if not isinstance(field, ast.AnnAssign) or not isinstance(field.target, ast.Name):
                continue
            if (
                isinstance(text, ast.Expr)
                and isinstance(text.value, ast.Constant)
                and isinstance(text.value.value, str)
            ):
                found[field.target.id] = " ".join(inspect.cleandoc(text.value.value).split())
    return found


def settings_of(model: type[BaseModel]) -> Iterator[Setting]:
    """A row for every field of a section."""
    docs = field_docs(model)
    for key, field in model.model_fields.items():
        yield Setting(key, type_name(field.annotation, field.metadata), default_of(field), docs.get(key, ""))


def type_name(annotation: Any, metadata: Iterable[Any] = ()) -> str:
    """A type as a reader knows it: `integer ≥ 1 or auto`."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return type_name(arguments[0], arguments[1:])
    if origin in (Union, types.UnionType):
        names = [type_name(argument, metadata if number == 0 else ()) for number, argument in enumerate(arguments)]
        return " or ".join(names)
    if origin is Literal:
        return " or ".join(f"`{value}`" for value in arguments)
    name = _NAMES.get(annotation) or str(getattr(annotation, "__name__", annotation))
    if origin in (list, tuple):
        inner = [argument for argument in arguments if argument is not Ellipsis]
        name = f"list of {type_name(inner[0])}s"
    return f"{name} {' and '.join(bounds(metadata))}".strip()


def bounds(metadata: Iterable[Any]) -> Iterator[str]:
    """Limits of a number: `≥ 0`, `< 1`."""
    for item in metadata:
        parts = item.metadata if isinstance(item, FieldInfo) else [item]
        for part in parts:
            yield from (f"{sign} {getattr(part, name):g}" for name, sign in _BOUNDS.items() if hasattr(part, name))


def default_of(field: FieldInfo) -> str:
    """The default as it is written in YAML."""
    value = field.get_default(call_default_factory=True)
    text = {None: "null", True: "true", False: "false"}.get(value) if value is None or type(value) is bool else None
    return f"`{text or value}`"


def table(settings: Iterable[Setting]) -> str:
    """Rows as Markdown."""
    lines = ["| key | type | default | meaning |", "|---|---|---|---|"]
    for row in settings:
        meaning = row.meaning.replace("|", "\\|")
        lines.append(f"| `{row.key}` | {row.type} | {row.default} | {meaning} |")
    return "\n".join(lines) + "\n"


def sections() -> Iterator[tuple[str, str, type[BaseModel]]]:
    """Title, introduction and class of every section; one per method for the methods' own."""
    from protocon.methods import METHODS
    from protocon.settings.config import RunConfig

    for name, field in RunConfig.model_fields.items():
        model = field.annotation
        if name != "method" and inspect.isclass(model) and issubclass(model, BaseModel):
            yield f"`{name}`", inspect.getdoc(model) or "", model
    for name, method in METHODS.items():
        summary = (inspect.getdoc(method) or "").split("\n\n")[0]
        yield f"Method `{name}`", summary, method.Config


def page() -> str:
    """The whole page as Markdown."""
    parts = [_INTRO]
    parts += [f"## {title}\n\n{intro}\n\n{table(settings_of(model))}" for title, intro, model in sections()]
    return "\n".join(parts)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the page to the site."""
    files.append(File.generated(config, PAGE, content=page()))
    return files
