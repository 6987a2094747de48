"""Errors that a user can act on: what came, what was expected, what to do."""

import difflib
from collections.abc import Iterable


class ProtoConError(Exception):
    """Base of every error we raise on purpose; the command line shows its message without a traceback."""


class ConfigError(ProtoConError):
    """A setting that is unknown, malformed, or contradicts another."""


class DataError(ProtoConError):
    """Input data that is missing, unreadable or inconsistent."""


class RunError(ProtoConError):
    """A run folder or checkpoint that cannot be used as asked."""


class RunStopped(ProtoConError):  # noqa: N818  # no error: it did what it was asked to
    """A run that was asked to stop, and is saved. `signal` is the number of the signal that asked."""

    def __init__(self, message: str, *, signal: int) -> None:
        super().__init__(message)
        self.signal = signal


class TrainingError(ProtoConError):
    """Training that cannot go on, such as a loss that is no longer finite."""


def unknown_name(kind: str, came: str, known: Iterable[str]) -> str:
    """The message for a name that is none of the known ones: the nearest of them, or all.

    Args:
        kind: what the name is of: a method, a setting.
        came: the name.
        known: names that there are.
    """
    names = sorted(known)
    near = difflib.get_close_matches(came, names, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]}?" if near else f"expected one of {', '.join(names)}"
    return f"unknown {kind} {came!r}; {hint}"
