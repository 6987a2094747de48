"""The end of a program, without taking its objects apart first: the system takes all memory back at once."""

import atexit
import os
import sys
import threading


def leave(code: object) -> None:
    """End this process as Python would, save that modules and objects stay until the system takes them back.

    What was registered for the end runs, and what was printed is written out. It returns, and the usual end is left to
    the caller, where something still needs Python: other threads, other processes that train together with this one, a
    profiler or debugger that looks on, a prompt that follows, or an output that is gone.

    Args:
        code: of `SystemExit`; only numbers and None are taken.
    """
    if not (code is None or isinstance(code, int)) or not _alone():
        return
    try:
        _write_out()
    except (OSError, ValueError):
        return  # Python knows how to say it
    atexit._run_exitfuncs()
    try:
        _write_out()
    finally:
        os._exit(0 if code is None else int(code) & 0xFF)


def _alone() -> bool:
    """Whether nothing but this thread's program is left."""
    watched = sys.getprofile() is not None or sys.gettrace() is not None or sys.flags.inspect or sys.flags.interactive
    threads = [one for one in threading.enumerate() if one is not threading.current_thread() and not one.daemon]
    return not watched and not threads and threading.current_thread() is threading.main_thread() and not _in_a_group()


def _in_a_group() -> bool:
    torch = sys.modules.get("torch.distributed")
    return torch is not None and torch.is_available() and torch.is_initialized()


def _write_out() -> None:
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
