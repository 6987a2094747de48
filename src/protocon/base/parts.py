"""What a row of features consists of: parts that are prepared and weighed one by one.

Of every look at an image there are the encoder's own features, then its pooled blocks; its colours come last.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

Kind = Literal["own", "block", "colours"]
_LENGTHS: dict[Kind, float] = {"own": 1.0, "block": 0.4, "colours": 0.85}
"""Length of a part in a point among which distances are measured."""


@dataclass(frozen=True)
class Part:
    """Neighbouring columns of the same kind."""

    width: int
    kind: Kind = "own"

    @property
    def length(self) -> float:
        """Of this part in a point."""
        return _LENGTHS[self.kind]

    @property
    def standardised(self) -> bool:
        """Whether its channels differ so much in scale that each must be brought to one before roots are taken."""
        return self.kind == "block"

    def __str__(self) -> str:
        return f"{self.kind} {self.width}"


Parts = tuple[Part, ...]


def look(own: int, *blocks: int) -> Parts:
    """The parts of one look at an image.

    Args:
        own: number of the encoder's own features.
        blocks: channels of each pooled block.
    """
    return (Part(own), *(Part(width, "block") for width in blocks))


def width(parts: Parts) -> int:
    """Numbers in a row of features."""
    return sum(part.width for part in parts)


def columns(parts: Parts) -> Iterator[tuple[slice, Part]]:
    """Every part with its columns."""
    start = 0
    for part in parts:
        yield slice(start, start + part.width), part
        start += part.width
