"""The log of answers on disk: a line is there before anybody is told so, and is never changed.

One process writes. The file is locked while it does; the lock ends with the process, however that ends.
"""

import os
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from protocon.base.atomic import sync_folder
from protocon.data.labels.answers import Entry, parse_lines
from protocon.errors import RunError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


class NotSavedError(RunError):
    """An answer that could not be written, and therefore does not count."""


class AnswerLog:
    """Entries of a file, and more of them.

    Args:
        path: made if it is not there.

    Attributes:
        entries: all lines that can be used, in order.
        problems: what is wrong with the others.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise RunError(f"cannot open the log of answers {path}: {error.strerror or error}") from error
        try:
            self._lock()
            content = _read_all(self._handle)
            self.entries, self.problems = parse_lines(content)
            self._end = len(content)
            # What a crash left of a line stays where it is, as a line of its own that is not used.
            self._separator = b"" if not content or content.endswith(b"\n") else b"\n"
            sync_folder(path.parent)
        except BaseException:
            os.close(self._handle)
            raise
        self._keys = {entry.key: entry for entry in self.entries}

    def _lock(self) -> None:
        if fcntl is None:
            return
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise RunError(
                f"{self.path} is in use: another `protocon label` has this folder open. Use its page, or stop it first"
            ) from error
        except OSError:
            return  # a file system without locks

    def find(self, key: str) -> Entry | None:
        """The entry with this key."""
        return self._keys.get(key)

    def append(self, entry: Entry, *, write: Callable[[int, bytes], int] = os.write) -> Entry:
        """Add a line and force it to the disk. An entry whose key is there already is not added again.

        Raises:
            NotSavedError: nothing was added; the file is as it was.
        """
        if known := self._keys.get(entry.key):
            return known
        line = self._separator + entry.line().encode("ascii") + b"\n"
        try:
            os.lseek(self._handle, self._end, os.SEEK_SET)
            rest = line
            while rest:
                rest = rest[write(self._handle, rest) :]
            os.fsync(self._handle)
        except OSError as error:
            self._take_back()
            raise NotSavedError(
                f"the answer is not saved: {error.strerror or error} ({self.path}). Make room on that disk, then "
                "answer again; all earlier answers are safe"
            ) from error
        self._end += len(line)
        self._separator = b""
        self.entries.append(entry)
        self._keys[entry.key] = entry
        return entry

    def _take_back(self) -> None:
        """Cut off what was written of a line. Where even that fails, the rest is a line that is not used."""
        try:
            os.ftruncate(self._handle, self._end)
            os.fsync(self._handle)
        except OSError:
            self._end = os.lseek(self._handle, 0, os.SEEK_END)
            self._separator = b"\n"

    def close(self) -> None:
        """Let go of the file."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _read_all(handle: int) -> bytes:
    parts = []
    while part := os.read(handle, 2**20):
        parts.append(part)
    return b"".join(parts)
