"""What a process of the tests need not do again and again."""

import functools
import importlib.metadata
import os


def without_waiting() -> None:
    """Do not wait for the disk, and look through the installed packages once; to be called before anything runs."""
    # No test cuts the power: what was written is there after a kill. Calls are made and counted as ever.
    os.fsync = os.fstat  # type: ignore[assignment]  # a closed file is still an error
    # Lightning looks for plugins among all installed packages in each run.
    importlib.metadata.entry_points = functools.cache(importlib.metadata.entry_points)  # type: ignore[assignment]
