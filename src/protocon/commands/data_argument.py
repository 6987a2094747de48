"""What a command is to read: a folder or file named on its own, a data set's name, or a root."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from protocon.data.recognise import recognise
from protocon.errors import ConfigError, DataError

_SETTING = re.compile(r"[A-Za-z_][\w.-]*=")


@dataclass(frozen=True)
class Input:
    """Where the data is, and the settings among the same arguments."""

    name: str | None
    root: Path | None
    overrides: tuple[str, ...]
    said: str | None = None
    """Which layout was recognised, and why."""


def find_input(
    arguments: Sequence[str] | None, *, data: str | None, root: Path | None, labels: Path | None = None
) -> Input:
    """Tell a folder or file from `key=value` settings, and find out how it is laid out.

    Args:
        arguments: positional ones.
        data: `--data`; `hf:NAME` is a data set of Hugging Face.
        root: `--root`.
        labels: `--labels`.
    """
    settings = tuple(text for text in arguments or () if _SETTING.match(text) and not Path(text).is_dir())
    places = [Path(text).expanduser() for text in arguments or () if text not in settings]
    for place in places:
        if not place.exists():
            raise DataError(
                f"{str(place)!r} is neither a setting (key=value, such as alpha=0.7) nor a folder or file that exists"
            )
    if len(places) > 1:
        raise ConfigError(f"{len(places)} folders are given: {', '.join(map(str, places))}; expected one")
    if places and root is not None:
        raise ConfigError(f"both {places[0]} and --root {root} are given; leave one out")
    if data is not None and data.startswith("hf:"):
        if places or root is not None:
            raise ConfigError(f"--data {data} names all that is needed; leave {places[0] if places else root} out")
        return Input("hf", Path(data.removeprefix("hf:")), settings)
    if not places:
        return Input(data, root, settings)
    if data is not None:
        return Input(data, places[0], settings)
    found = recognise(places[0], labels)
    return Input(found.name, found.root, settings, found.said())
