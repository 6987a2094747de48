"""What was probably meant by the name of a file or folder that is not there."""

import difflib
from pathlib import Path


def near_path(missing: Path) -> Path | None:
    """What is there beside it and has nearly that name; None if nothing has.

    Args:
        missing: a path that does not exist.
    """
    try:
        there = sorted(entry.name for entry in missing.parent.iterdir())
    except OSError:
        return None
    near = difflib.get_close_matches(missing.name, there, n=1)
    return missing.parent / near[0] if near else None
