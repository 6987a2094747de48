"""Where a source looks for its data, and what it says when the data is not there."""

from pathlib import Path

from protocon.data.files.stores import FileStore, FolderStore, ZipStore
from protocon.data.source_options import SourceOptions
from protocon.errors import DataError

_SHOWN = 8


def need_root(options: SourceOptions, source: str, expected: str) -> Path:
    """The root option, or an error if it is not given or does not exist.

    Args:
        options: as the user gave them.
        source: name of the data source, for messages.
        expected: what the root should hold, for messages.
    """
    if options.root is None:
        raise DataError(f"Dataset {source!r} needs the option root: {expected}.")
    if not options.root.exists():
        raise DataError(f"Dataset {source!r}: {options.root} does not exist. Expected there: {expected}.")
    return options.root


def open_store(root: Path, source: str, expected: str) -> FileStore:
    """The files below a folder, or in a zip archive.

    Args:
        root: a folder, or a zip archive.
        source: name of the data source, for messages.
        expected: what the root should hold, for messages.
    """
    if root.is_dir():
        return FolderStore(root)
    if root.suffix.lower() == ".zip":
        return ZipStore(root)
    raise wrong_place(root, source, expected)


def wrong_place(root: Path, source: str, expected: str, get: str = "") -> DataError:
    """The error for a root that holds something else: what was expected, what is there, what to do.

    Args:
        root: as given.
        source: name of the data source.
        expected: what the root should hold.
        get: where to get it, if that can be said.
    """
    text = f"Dataset {source!r}: expected in {root}: {expected}. Found: {describe_place(root)}."
    return DataError(f"{text} {get}" if get else text)


def describe_place(place: Path) -> str:
    """What lies at a place, in a few words."""
    if not place.exists():
        return "nothing"
    if place.is_file():
        return f"a file of {place.stat().st_size:,} bytes"
    names = sorted(entry.name + ("/" if entry.is_dir() else "") for entry in place.iterdir())
    if not names:
        return "an empty folder"
    more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def some(items: list[str], shown: int = 5) -> str:
    """The first few of a list, and how many more there are."""
    more = f" and {len(items) - shown:,} more" if len(items) > shown else ""
    return ", ".join(items[:shown]) + more
