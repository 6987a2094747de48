"""Where image files lie: a folder or a zip archive, listed and opened in the same way."""

import io
import lzma
import os
import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any, BinaryIO, NamedTuple, Protocol

from protocon.errors import DataError

BROKEN = -1
"""Size of an entry that cannot be read: a link to nowhere, or to itself."""
LOOP = -2
"""Size of a link to a folder that it lies in, which is not followed."""

_MAX_MEMBER_BYTES = 2**29  # a zip states any size it likes; no image we decode needs half a gigabyte


_BAD_ZIP = (zipfile.BadZipFile, NotImplementedError, ValueError, EOFError, struct.error, zlib.error, lzma.LZMAError)
"""What zipfile stumbles over in a damaged archive."""


class FileEntry(NamedTuple):
    """One file: its path within the store, with forward slashes, its size in bytes, and its stamp.

    The stamp changes when the file does: time of last change in a folder, checksum in an archive.
    """

    path: str
    size: int
    stamp: int = 0


class FileStore(Protocol):
    """Files by their path relative to the store."""

    @property
    def where(self) -> str:
        """What a message calls this store."""

    def files(self, under: str = "") -> list[FileEntry]:
        """Every file below the folder `under`, sorted by path."""

    def folders(self, under: str = "") -> list[str]:
        """Names of the folders directly in `under`, sorted, empty ones included."""

    def open(self, path: str) -> BinaryIO:
        """Open one file for reading."""

    def full_name(self, path: str) -> str:
        """What a message calls this file."""


class FolderStore:
    """Files below a folder. Links are followed; a folder that is linked into itself is read once."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @property
    def where(self) -> str:
        """The folder or archive, for messages."""
        return str(self.root)

    def files(self, under: str = "") -> list[FileEntry]:
        """Every file below the folder `under`, sorted by path."""
        prefix = under.rstrip("/") + "/" if under else ""
        return sorted(self._walk(str(self.root / under), prefix, frozenset()))

    def _walk(self, folder: str, prefix: str, above: frozenset[tuple[int, int]]) -> Iterator[FileEntry]:
        # Plain strings, not Path objects: ImageNet has 1.3 million files.
        try:
            status = os.stat(folder)  # noqa: PTH116
            entries = list(os.scandir(folder))
        except OSError as error:
            raise DataError(f"{folder} cannot be listed: {error.strerror}. Check its permissions.") from error
        key = (status.st_dev, status.st_ino)
        if key in above:
            yield FileEntry(prefix.rstrip("/"), LOOP)
            return
        for entry in entries:
            if _is_folder(entry):
                yield from self._walk(entry.path, f"{prefix}{entry.name}/", above | {key})
                continue
            try:
                found = entry.stat()
            except OSError:
                yield FileEntry(prefix + entry.name, BROKEN)
                continue
            yield FileEntry(prefix + entry.name, found.st_size, found.st_mtime_ns)

    def entry(self, path: str) -> FileEntry | None:
        """One file by its path, or None if there is none."""
        if not is_inside(path):
            raise DataError(
                f"{path} is not below {self.root}. Files of a list are named relative to that folder, without `..`."
            )
        full = self.root / path
        try:
            status = full.stat()
        except (OSError, ValueError):  # not there, or a name that no file can have
            return None
        return FileEntry(path, status.st_size, status.st_mtime_ns) if full.is_file() else None

    def folders(self, under: str = "") -> list[str]:
        """Names of the folders directly in `under`, sorted."""
        folder = self.root / under
        # A link to a folder that holds it is no folder of its own: `files` does not follow it.
        above = {folder.resolve(), *folder.resolve().parents}
        return sorted(
            entry.name
            for entry in os.scandir(folder)
            if _is_folder(entry) and not (entry.is_symlink() and Path(entry.path).resolve() in above)
        )

    def open(self, path: str) -> BinaryIO:
        """Open one file for reading."""
        try:
            return (self.root / path).open("rb")
        except OSError as error:
            raise DataError(f"{self.root / path} cannot be opened: {error.strerror}.") from error

    def full_name(self, path: str) -> str:
        """The file as a message names it."""
        return str(self.root / path)


class ZipStore:
    """Files in a zip archive, read in place.

    Where everything lies in one top folder (`cifar10/train/…`), paths start below it.
    """

    def __init__(self, archive: Path) -> None:
        self.archive = archive
        self._handle: tuple[int, zipfile.ZipFile] | None = None
        self._prefix = self._common_folder()

    @property
    def where(self) -> str:
        """The folder or archive, for messages."""
        return str(self.archive)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_handle": None}

    def _zip(self) -> zipfile.ZipFile:
        # One handle per process: a forked one would move the file position under its parent.
        if self._handle is None or self._handle[0] != os.getpid():
            try:
                self._handle = (os.getpid(), zipfile.ZipFile(self.archive))
            except (OSError, *_BAD_ZIP) as error:
                raise DataError(f"{self.archive} is not a readable zip archive: {error}.") from error
        return self._handle[1]

    def _common_folder(self) -> str:
        names = [name for name in self._zip().namelist() if not is_hidden(name)]
        prefix = ""
        while True:
            tops = {name[len(prefix) :].partition("/")[:2] for name in names if name != prefix}
            if len(tops) != 1:
                return prefix
            top, slash = tops.pop()
            if not slash:
                return prefix
            prefix += top + "/"

    def files(self, under: str = "") -> list[FileEntry]:
        """Every file below the folder `under`, sorted by path."""
        start = self._prefix + (under.rstrip("/") + "/" if under else "")
        members = self._zip().NameToInfo.values()
        return sorted(
            FileEntry(self._relative(member.filename), member.file_size, member.CRC)
            for member in members
            if not member.is_dir() and (not under or member.filename.startswith(start))
        )

    def _relative(self, name: str) -> str:
        # What lies beside the top folder (such as __MACOSX/) keeps its name, so that it is accounted for.
        return name.removeprefix(self._prefix)

    def folders(self, under: str = "") -> list[str]:
        """Names of the folders directly in `under`, sorted."""
        start = self._prefix + (under.rstrip("/") + "/" if under else "")
        rests = (name[len(start) :] for name in self._zip().namelist() if name.startswith(start))
        return sorted({rest.partition("/")[0] for rest in rests if "/" in rest})

    def open(self, path: str) -> BinaryIO:
        """Open one file for reading."""
        name = path if path in self._zip().NameToInfo else self._prefix + path
        try:
            member = self._zip().getinfo(name)
            if member.file_size > _MAX_MEMBER_BYTES:
                raise DataError(f"{self.full_name(path)} has {member.file_size:,} bytes: too large for an image.")
            return io.BytesIO(self._zip().read(member))
        except (KeyError, OSError, RuntimeError, *_BAD_ZIP) as error:
            raise DataError(f"{self.full_name(path)} cannot be read from the archive: {error}.") from error

    def full_name(self, path: str) -> str:
        """The file as a message names it."""
        return f"{self.archive}:{path}"


def _is_folder(entry: "os.DirEntry[str]") -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link to itself
        return False


def is_inside(path: str) -> bool:
    """Whether a relative path stays below the folder it starts from. Links in that folder are its owner's business."""
    parts = PurePosixPath(path.replace("\\", "/"))
    return not parts.is_absolute() and ".." not in parts.parts and not PureWindowsPath(path).drive


def is_hidden(path: str) -> bool:
    """Whether a file is the system's own: `.DS_Store`, `.ipynb_checkpoints/…`, `__MACOSX/…`."""
    return "/." in f"/{path}" or "/__MACOSX/" in f"/{path}/"
