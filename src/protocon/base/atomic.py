"""Files that are there whole or not at all, and lines that are on the disk before anything relies on them."""

import errno
import os
from pathlib import Path

from protocon.errors import RunError

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file so that a crash leaves either the old one or the new one, never a part.

    Written aside, forced to the disk, renamed; then the folder is forced to the disk too, for the new name lives there.
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
    """What a file is called until it is whole."""
    return f".{name}.writing"


def append_line(path: Path, line: str) -> None:
    """Add a line and force it to the disk: a checkpoint that is written next may rely on it being there."""
    try:
        with path.open("a", encoding="utf-8", newline="\n") as file:
            file.write(line + "\n")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise cannot_write(path, error, "the lines before are untouched") from error


def sync_folder(folder: Path) -> None:
    """Force a folder's names to the disk, where the system can."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return  # Windows does not open folders
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP, errno.EBADF):  # file systems without such a thing
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
        text += ". Make room on that disk; --resume then goes on from the last checkpoint"
    return RunError(text)
