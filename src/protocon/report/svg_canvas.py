"""Shapes and words as the text of an SVG picture."""

import base64
import html
import math
from collections.abc import Sequence

import numpy as np

INK, FRAME, GRID = "#3d4450", "#8a919c", "#e3e6eb"
"""Of words, of axes, and of the lines behind curves."""
FONT = 10.5
"""Size of words in points."""
NAME_LENGTH = 16
_DASHES = {"-": "", "--": "7 3", "-.": "7 3 1.5 3", ":": "1.8 2.6"}


class Canvas:
    """A picture that is drawn from back to front; points from the top left corner, y downwards.

    Args:
        width: in points.
        height: in points.
    """

    def __init__(self, width: float, height: float) -> None:
        self.width, self.height = width, height
        self._parts: list[str] = []

    def line(self, points: Sequence[tuple[float, float]], *, colour: str, width: float = 0.8, dash: str = "-") -> None:
        """Straight from point to point.

        Args:
            points: x and y of each.
            colour: of the line.
            width: in points.
            dash: as in matplotlib: - -- -. :
        """
        places = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        dashes = f' stroke-dasharray="{_DASHES[dash]}"' if _DASHES[dash] else ""
        self._parts.append(
            f'<polyline points="{places}" fill="none" stroke="{colour}" stroke-width="{width}"{dashes} '
            'stroke-linejoin="round"/>'
        )

    def dot(self, x: float, y: float, *, colour: str) -> None:
        """A small disc.

        Args:
            x: of its middle.
            y: of its middle.
            colour: of the disc.
        """
        self._parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>')

    def box(self, x: float, y: float, width: float, height: float, *, colour: str) -> None:
        """A filled rectangle.

        Args:
            x: of its left side.
            y: of its upper side.
            width: in points.
            height: in points.
            colour: of all of it.
        """
        size = f'width="{width:.2f}" height="{height:.2f}"'
        self._parts.append(f'<rect x="{x:.2f}" y="{y:.2f}" {size} fill="{colour}"/>')

    def words(
        self,
        x: float,
        y: float,
        text: str,
        *,
        anchor: str = "start",
        size: float = FONT,
        colour: str = INK,
        upwards: bool = False,
    ) -> None:
        """A line of text whose foot is at y.

        Args:
            x: of its start, middle or end.
            y: of its foot.
            text: any; what XML cannot hold is shown as a question mark.
            anchor: start, middle or end: what of it lies at x.
            size: in points.
            colour: of the letters.
            upwards: turned by a quarter, to be read from below.
        """
        clean = "".join(letter if letter.isprintable() else "?" for letter in text)
        turned = f' transform="rotate(-90 {x:.1f} {y:.1f})"' if upwards else ""
        self._parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{colour}" text-anchor="{anchor}"{turned}>'
            f"{html.escape(clean)}</text>"
        )

    def uri(self) -> str:
        """The picture as a data URI. Words stay words, in the reader's own font."""
        box = f'viewBox="0 0 {self.width:.0f} {self.height:.0f}"'
        text = (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{self.width:.0f}pt" height="{self.height:.0f}pt" {box} '
            f'font-family="sans-serif">{"".join(self._parts)}</svg>'
        )
        return "data:image/svg+xml;base64," + base64.b64encode(text.encode("utf-8", "replace")).decode()


def ticks(low: float, high: float, most: int, *, whole: bool = False) -> list[float]:
    """Round numbers from low to high, at most so many and one more; 1, 2 or 5 times a power of ten apart.

    Args:
        low: end of an axis.
        high: its other end, above it.
        most: of them.
        whole: only whole numbers.
    """
    wanted = (high - low) / most
    power = 10.0 ** math.floor(math.log10(wanted))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= wanted * (1 - 1e-9))
    step = max(1.0, step) if whole else step
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [number * step for number in range(first, last + 1)]


def length_of(text: str, size: float = FONT) -> float:
    """About how wide a line of text is, in points; letters of wide scripts are twice as wide."""
    return size * sum(1.0 if ord(letter) > 0x2E7F else 0.56 for letter in text)


def short(name: str, length: int = NAME_LENGTH) -> str:
    """A name that fits beside an axis."""
    clean = " ".join(name.split())
    return clean if len(clean) <= length else clean[: length - 1] + "…"


def shade(share: float) -> str:
    """From white (0) to dark blue (1)."""
    stops = np.array([(247, 251, 255), (198, 219, 239), (107, 174, 214), (33, 113, 181), (8, 48, 107)], dtype=float)
    place = min(max(share, 0.0), 1.0) * (len(stops) - 1)
    below = min(int(place), len(stops) - 2)
    mixed = stops[below] + (place - below) * (stops[below + 1] - stops[below])
    return "#" + "".join(f"{round(float(part)):02x}" for part in mixed)
