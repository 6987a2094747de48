"""Names of classes: any text of one line, as long as it is a name."""

import unicodedata

from protocon.data.labels.label_match import UNKNOWN_LABELS
from protocon.errors import ConfigError

LONGEST = 80


def checked_name(text: str) -> str:
    """The name without spaces around it and with composed accents; ConfigError if it cannot be one."""
    name = " ".join(unicodedata.normalize("NFC", text).split())
    if name in UNKNOWN_LABELS:
        raise ConfigError(f"{text!r} cannot be a class name: empty names and -1 stand for an unknown class")
    if len(name) > LONGEST:
        raise ConfigError(f"a class name of {len(name)} characters; at most {LONGEST} are allowed")
    if not name.isprintable():
        raise ConfigError("a class name with characters that cannot be printed; use plain text")
    return name
