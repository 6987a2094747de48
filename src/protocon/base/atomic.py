"""Files that are written completely or not at all, and lines that are on disk before anything relies on them."""

import errno
import os
from pathlib import Path

from protocon.errors import RunError

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file so that a crash leaves either the old one or the new one, never a part.

    Written under a temporary name, forced to disk and renamed; then the folder is forced to disk too, for the new name.
    """
    aside = path.with_name(unfinished_name(path.name))
    try:
        with aside.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        aside.replace(path)
        sync_folder(path.parent)
    except OSError as error:
        aside.unlink(missing_ok=True)
        raise cannot_write(path, error, "what was there before is untouched") from error


def unfinished_name(name: str) -> str:
    """Name of a file until it is complete."""
    return f".{name}.writing"


def append_line(path: Path, line: str) -> None:
    """Append a line and force it to disk: the checkpoint that is written next relies on it."""
    try:
        with path.open("a", encoding="utf-8", newline="\n") as file:
            file.write(line + "\n")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise cannot_write(path, error, "the lines before are untouched") from error


def sync_folder(folder: Path) -> None:
    """Force a folder's entries to disk, where the system can."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return  # Windows cannot open folders
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP, errno.EBADF):  # file systems without fsync of folders
            raise
    finally:
        os.close(handle)


def cannot_write(path: Path, error: OSError, consequence: str) -> RunError:
    """The error for a file that cannot be written, with what to do if the disk is full.

    Args:
        path: the file.
        error: what the system said.
        consequence: what this means for the user's data.
    """
    text = f"cannot write {path}: {error.strerror or error}; {consequence}"
    if error.errno in _FULL:
        text += ". Free some space on that disk; --resume then continues from the last checkpoint"
    return RunError(text)
