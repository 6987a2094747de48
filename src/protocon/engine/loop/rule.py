"""A rule of the guards: a symptom in an epoch's numbers, and what to try."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

Row = Mapping[str, float]


@dataclass(frozen=True)
class Rule:
    """A symptom that must last before it counts: single epochs say little."""

    kind: str
    holds: Callable[[Row], str | None]
    """What is seen in an epoch's numbers, in words; None where all is well or the number is not there."""
    advice: str
    first_epoch: int
    """Epochs before this are not judged: clusters and confidence have to form first."""
    patience: int
    """Epochs in a row."""


def below(key: str, limit: float, text: str) -> Callable[[Row], str | None]:
    """Holds where the number is there and lower.

    Args:
        key: of the epoch's numbers.
        limit: to compare it with.
        text: what is said, with a place for the number.
    """
    return lambda row: text.format(row[key]) if key in row and row[key] < limit else None


def above(key: str, limit: float, text: str) -> Callable[[Row], str | None]:
    """Holds where the number is there and higher.

    Args:
        key: of the epoch's numbers.
        limit: to compare it with.
        text: what is said, with a place for the number.
    """
    return lambda row: text.format(row[key]) if key in row and row[key] > limit else None
