"""One process a run folder: a lock that a living process holds and a dead one cannot."""

import errno
import json
import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from protocon.base.atomic import cannot_write
from protocon.errors import RunError
from protocon.runs.layout import LOCK

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_UNSUPPORTED = (errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL)
_ORPHANS_SECONDS = 15.0
"""Loader processes inherit the lock and outlive a killed run by up to some seconds; only then do they notice."""


@contextmanager
def locked(folder: Path, say: Callable[[str], None]) -> Iterator[None]:
    """Hold the folder's lock; refuses if a living process has it, takes over what a dead one left, saying so.

    The kernel's lock decides where there is one: it ends with its process, however that ended. The file names its
    holder by process number, host and start time; where the file system has no locks, these alone decide.
    """
    path = folder / LOCK
    handle = _acquire(path, say)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)  # while still held: whoever waits for this very file notices that it is gone
        os.close(handle)


def _acquire(path: Path, say: Callable[[str], None]) -> int:
    deadline = time.monotonic() + _ORPHANS_SECONDS
    while True:
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise cannot_write(path, error, "the run cannot be locked") from error
        try:
            free = _try_lock(handle)
            if free and not _still_there(path, handle):
                os.close(handle)
                continue  # its holder ended, and took the file along, between our two calls
            holder = _read(handle)
            if free is False and holder and not _alive(holder) and time.monotonic() < deadline:
                os.close(handle)
                time.sleep(0.2)
                continue
            if free is False or (free is None and holder and _alive(holder)):
                raise RunError(_refusal(path, holder))
            if holder:
                say(f"{path.parent} was left by {_describe(holder)}, which is gone; taking over")
            _write(handle)
        except OSError as error:
            os.close(handle)
            raise cannot_write(path, error, "the run cannot be locked") from error
        except RunError:
            os.close(handle)
            raise
        return handle


def _try_lock(handle: int) -> bool | None:
    """Whether we got the kernel's lock; None where there is none to get."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno in _UNSUPPORTED:
            return None
        raise
    return True


def _still_there(path: Path, handle: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(handle))
    except FileNotFoundError:
        return False


def _read(handle: int) -> dict[str, Any] | None:
    """Who the file says holds it; None if it says nothing that makes sense."""
    try:
        os.lseek(handle, 0, os.SEEK_SET)
        content = json.loads(os.read(handle, 4096))
    except ValueError:
        return None
    known = isinstance(content, dict) and isinstance(content.get("pid"), int) and isinstance(content.get("host"), str)
    return content if known else None


def _write(handle: int) -> None:
    content = {"pid": os.getpid(), "host": socket.gethostname(), "started": started(os.getpid())}
    os.ftruncate(handle, 0)
    os.lseek(handle, 0, os.SEEK_SET)
    os.write(handle, json.dumps(content).encode() + b"\n")
    os.fsync(handle)


def _alive(holder: dict[str, Any]) -> bool:
    """Whether the holder may still live: not if its number is free, or belongs to a younger process."""
    if holder["host"] != socket.gethostname():
        return True  # nothing can be known of another host's processes
    if holder["pid"] <= 0:
        return False  # such a number means a whole group of processes
    try:
        os.kill(holder["pid"], 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass  # it lives, and is somebody else's
    return holder.get("started") in (None, started(holder["pid"]))


def started(pid: int) -> int | None:
    """When a process began, in clock ticks since the machine did; None where the system does not tell."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()  # the name before may hold anything, brackets too
    return None if fields[0] == "Z" else int(fields[19])  # a zombie has ended, it is only not yet accounted for


def _describe(holder: dict[str, Any]) -> str:
    return f"process {holder['pid']} on {holder['host']}"


def _refusal(path: Path, holder: dict[str, Any] | None) -> str:
    who = _describe(holder) if holder else "another process"
    text = f"{path.parent} is in use by {who}; two processes cannot train in one run folder. Wait for it, or stop it"
    if holder and holder["host"] != socket.gethostname():
        text += f". If that process is surely gone, remove {path}"
    return text
