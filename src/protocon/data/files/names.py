"""File names as messages show them, and as people write them."""

import posixpath
import unicodedata


def shown(name: str) -> str:
    """The name on one line that any terminal can print: line breaks and stray bytes are escaped."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in name)


def normal(name: str) -> str:
    """One spelling for one file: forward slashes, no `./` or `a/../`, composed accents.

    Macs store é as two characters where a table may have it as one; Windows writes backslashes.
    """
    path = posixpath.normpath(unicodedata.normalize("NFC", name).replace("\\", "/"))
    return "" if path == "." else path


def leaves(path: str) -> bool:
    """Whether a normal name points out of the folder that it is relative to."""
    return path == ".." or path.startswith(("../", "/")) or path[1:3] == ":/"
