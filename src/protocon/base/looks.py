"""What a row of features consists of: of every look at an image the encoder's own features, then its pooled blocks."""

from collections.abc import Iterator

Looks = tuple[tuple[int, ...], ...]
"""Of every look, in order, the length of the encoder's own features and of each pooled block."""
BLOCK_WEIGHT = 0.4
"""Length of a pooled block's part of a point; the encoder's own features have 1."""


def width(looks: Looks) -> int:
    """Numbers in a row of features."""
    return sum(map(sum, looks))


def columns(looks: Looks) -> Iterator[tuple[slice, list[slice]]]:
    """Of every look the columns of the encoder's own features, and those of each pooled block."""
    start = 0
    for look in looks:
        parts = []
        for length in look:
            parts.append(slice(start, start + length))
            start += length
        yield parts[0], parts[1:]
