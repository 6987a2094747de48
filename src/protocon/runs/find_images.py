"""What `predict` is asked about: files, folders, archives, patterns and lists; one entry an image, none decoded."""

import glob
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from protocon.data.files.stores import FileStore, FolderStore, ZipStore
from protocon.data.sources.listing import sort_out
from protocon.errors import DataError

_IN_FOLDERS = ("hidden file", "not an image")
"""Why a file of a folder is passed over in silence; all other reasons are errors, since somebody wanted it labelled."""


@dataclass(frozen=True)
class Wanted:
    """One image to label: where it lies, or why it cannot be read."""

    name: str
    """What the output calls it."""
    store: FileStore | None = None
    path: str = ""
    error: str | None = None


def find_images(paths: Sequence[str | Path]) -> Iterator[Wanted]:
    """Every image that these paths stand for, in their order; a folder's and an archive's sorted by path.

    A path that exists is taken literally, whatever brackets or stars are in its name; one that does not is tried as a
    pattern (`photos/*.jpg`), for shells that leave patterns alone.
    """
    for path in map(str, paths):
        if Path(path).exists() or Path(path).is_symlink():
            yield from _images_at(Path(path))
        elif glob.has_magic(path) and (found := sorted(glob.glob(path, recursive=True))):  # noqa: PTH207  # ** and absolute patterns
            for name in found:
                yield from _images_at(Path(name))
        else:
            yield Wanted(path, error=f"{path} does not exist")


def _images_at(path: Path) -> Iterator[Wanted]:
    if path.is_dir():
        yield from _members(FolderStore(path), lambda name: str(path / name))
    elif path.suffix.lower() == ".zip":
        try:
            store = ZipStore(path)
        except DataError as error:
            yield Wanted(str(path), error=str(error))
            return
        yield from _members(store, lambda name: f"{path}:{name}")
    else:
        yield Wanted(str(path), FolderStore(path.parent), path.name)


def _members(store: FileStore, named: Callable[[str], str]) -> Iterator[Wanted]:
    try:
        images, skipped = sort_out(store.files())
    except DataError as error:
        yield Wanted(store.where, error=str(error))
        return
    wanted = [Wanted(named(entry.path), store, entry.path) for entry in images]
    wanted += [
        Wanted(named(item.path), error=f"{named(item.path)}: {item.reason}")
        for item in skipped
        if not item.reason.startswith(_IN_FOLDERS)
    ]
    yield from sorted(wanted, key=lambda item: item.name)


def listed(lines: Iterable[str]) -> Iterator[str]:
    """Paths of a list, one a line, or separated by NUL as `find -print0` writes them; empty ones are left out."""
    for line in lines:
        yield from (part for part in line.rstrip("\r\n").split("\0") if part)
