"""Variants of a method in one grid: `protocon+lambda_c=0` is ProtoCon with one of its own settings changed."""

import re
from dataclasses import dataclass

from protocon.errors import ConfigError, unknown_name
from protocon.methods import METHODS
from protocon.references import REFERENCES
from protocon.settings.config import current_key

_FILE_NAME = re.compile(r"[\w.+=-]+")


@dataclass(frozen=True)
class Variant:
    """A row of a grid: a method or reference, and which of its own settings are different."""

    base: str
    """A name of METHODS or REFERENCES."""
    changes: tuple[str, ...] = ()
    """`key=value` of the method's own settings."""

    @property
    def name(self) -> str:
        """How the row, and the folders of its cells, are called."""
        return "+".join((self.base, *self.changes))


def read_variant(text: str) -> Variant:
    """A variant from `METHOD+key=value+key=value`; spaces do not matter."""
    base, *parts = (part.strip() for part in text.split("+"))
    known = [*METHODS, *REFERENCES]
    if base not in known:
        raise ConfigError(unknown_name("method", base, known))
    variant = Variant(base, tuple(_change(part, base, text) for part in parts))
    if not _FILE_NAME.fullmatch(variant.name):
        raise ConfigError(f"{text!r} cannot be the name of a folder; change such settings with METHOD.key=value")
    return variant


def _change(part: str, base: str, text: str) -> str:
    """One `key=value` in its short form, if it is a setting of that method."""
    key, separator, value = (piece.strip() for piece in part.partition("="))
    if not separator or not value:
        raise ConfigError(f"{text!r} came; expected METHOD+key=value, such as protocon+alpha=0.5")
    own = list(METHODS[base].Config.model_fields) if base in METHODS else []
    name = current_key(key).removeprefix("method.")
    if name not in own:
        rule = "A variant changes the method's own settings; the others are the same for all methods"
        raise ConfigError(f"{unknown_name(f'setting of {base}', key, own)}. {rule}")
    return f"{name}={value}"


def base_of(name: str) -> str:
    """The method or reference that a row is a variant of; itself where nothing is changed."""
    return name.partition("+")[0]
