"""Memory of large tensors is kept for the next one instead of being returned to the system.

glibc maps fresh pages for every block over 32 MiB, and the kernel clears them at every allocation: up to a quarter of a
training step of a wide ResNet on a CPU. Kept, they are cleared once.

These are settings of the C library, read when a process starts. So the command line restarts itself with them,
before it imports anything large; the process keeps its number.
"""

import os
import platform
import sys

_OWN = "PROTOCON_ALLOCATOR"
_TUNABLES = "GLIBC_TUNABLES"
_KEPT = (
    "glibc.malloc.mmap_max=0",  # large blocks come from the heap too
    f"glibc.malloc.trim_threshold={2**36}",  # whose end is not given back
    # Torch asks for aligned blocks, whose cut-off ends would go into a cache of small ones, unmerged; then a freed
    # block is a few bytes too small for its successor, and memory grows from step to step.
    "glibc.malloc.tcache_count=0",
    "glibc.malloc.mxfast=0",
)


def environment_that_keeps_memory() -> dict[str, str] | None:
    """The environment of this process with the settings; None where they do not apply or are already set.

    They apply on Linux with glibc, unless PROTOCON_ALLOCATOR=system asks for the usual allocator.
    """
    if platform.system() != "Linux" or platform.libc_ver()[0] != "glibc" or _OWN in os.environ:
        return None
    given = [os.environ[_TUNABLES]] if os.environ.get(_TUNABLES) else []
    return os.environ | {_TUNABLES: ":".join([*given, *_KEPT]), _OWN: "kept"}


def restart_to_keep_memory() -> None:
    """Run this program again from its first line with the settings; returns where there is nothing to do."""
    environment = environment_that_keeps_memory()
    if environment is None or not sys.executable:
        return
    try:
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], environment)
    except OSError:
        return  # slower, but just as correct
