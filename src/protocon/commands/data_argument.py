"""What a command reads: a folder or file named on its own, a data set's name, or a root, with its settings."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from protocon.data.files.near_path import near_path
from protocon.errors import ConfigError, DataError

if TYPE_CHECKING:
    from protocon.settings.config import RunConfig

_TABLES = (".csv", ".tsv", ".xlsx", ".txt", ".jsonl")
"""What a table of labels may end in."""
_SETTING = re.compile(r"[A-Za-z_][\w.-]*=")


@dataclass(frozen=True)
class DataArgument:
    """Settings of a command, with its data found."""

    settings: Mapping[str, Any]
    """Nested, section by section."""
    recipe: str | None = None
    overrides: tuple[str, ...] = ()
    """`key=value` texts, which have the last word."""
    said: str | None = None
    """Which layout was recognised, and why."""

    def config(self) -> "RunConfig":
        """All settings of a run, validated."""
        from protocon.settings.config import build_config

        return build_config(recipe=self.recipe, settings=self.settings, overrides=self.overrides)

    def lines(self) -> list[str]:
        """What to say before anything is done: the layout, and what to install where that would help."""
        from protocon.settings.config import encoder_advice

        advice = encoder_advice(recipe=self.recipe, settings=self.settings, overrides=self.overrides)
        return [line for line in (self.said, advice) if line is not None]


def find_inputs(
    arguments: Sequence[str], *, settings: Mapping[str, Any], recipe: str | None = None, needs_labels: bool = True
) -> DataArgument:
    """Tell a folder or file from `key=value` settings, and find out how it is laid out.

    Args:
        arguments: positional ones.
        settings: what the options say; `data.name` may be `hf:NAME`, a data set of Hugging Face.
        recipe: which settings they are put over.
        needs_labels: refuse a folder that has none.
    """
    overrides = tuple(text for text in arguments if _SETTING.match(text) and not Path(text).is_dir())
    places = [Path(text).expanduser() for text in arguments if text not in overrides]
    data = dict(settings.get("data", {}))
    said = _find_data(places, data, needs_labels=needs_labels)
    return DataArgument({**settings, "data": data}, recipe, overrides, said)


def _nearest(missing: Path) -> str:
    """A word on what is there and has nearly that name."""
    near = near_path(missing)
    return f"; did you mean {near}?" if near else ""


def _too_many(places: Sequence[Path]) -> str:
    """The message for more than one folder."""
    if len(places) == 2 and sum(place.suffix.lower() in _TABLES for place in places) == 1:
        folder, table = sorted(places, key=lambda place: place.suffix.lower() in _TABLES)
        return f"{folder} and {table} are given; a table of labels is given with --labels {table}"
    listed = ", ".join(map(str, places[:3])) + (", …" if len(places) > 3 else "")
    return f"{len(places):,} folders or files are given ({listed}); expected one: the folder of the images"


def _find_data(places: Sequence[Path], data: dict[str, Any], *, needs_labels: bool) -> str | None:
    """Set name and root of the data; returns what was recognised."""
    name, root = data.get("name"), data.get("root")
    for place in places:
        if not place.exists():
            raise DataError(
                f"{str(place)!r} is neither a setting (key=value, such as alpha=0.7) nor a folder or file that exists"
                f"{_nearest(place)}"
            )
    if len(places) > 1:
        raise ConfigError(_too_many(places))
    if places and root is not None:
        raise ConfigError(f"both {places[0]} and --root {root} are given; leave one out")
    if name is not None and name.startswith("hf:"):
        if places or root is not None:
            raise ConfigError(f"--data {name} names all that is needed; leave {places[0] if places else root} out")
        data |= {"name": "hf", "root": Path(name.removeprefix("hf:"))}
        return None
    if not places:
        return None
    if name is not None:
        data["root"] = places[0]
        return None
    from protocon.data.recognise import recognise

    found = recognise(places[0], data.get("labels"), needs_labels=needs_labels)
    data |= {"name": found.name, "root": found.root}
    return found.said()
