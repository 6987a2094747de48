"""Curves and counts, the figures that every report has, drawn by ourselves.

matplotlib draws the rarer ones (`drawing`); its import and its layout take longer than all the rest of a report.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from protocon.report.collect import Confusion, Curve
from protocon.report.svg_canvas import FONT, FRAME, GRID, Canvas, length_of, shade, short, ticks

_WIDTH = 403.0
_ROOM = 0.05
"""Of an axis beyond its last value."""
_LEGEND_ROW = 15.0


@dataclass(frozen=True)
class Line:
    """A curve with its name and look."""

    label: str
    curve: Curve
    colour: str
    dash: str = "-"


def lines(series: Sequence[Line], *, percent: bool, legend: bool) -> str:
    """Curves over the epochs in one frame; shares on an axis from 0 to 100 %, anything else from 0 on.

    Args:
        series: curves with their names and colours.
        percent: whether values are shares.
        legend: whether to name the curves in the frame.
    """
    columns = 2 if max(len(line.label) for line in series) > 14 else min(4, len(series))
    rows = -(-len(series) // columns) if legend else 0
    canvas = Canvas(_WIDTH, 218 + _LEGEND_ROW * rows)
    _panel(canvas, (0, 0, _WIDTH, 218), series, title="", percent=percent)
    if legend:
        _legend(canvas, 226, series, columns)
    return canvas.uri()


def panels(parts: Sequence[tuple[str, Sequence[Line]]]) -> str:
    """Small frames side by side, two in a row, each with its own scale."""
    named = parts[0][1] if parts and len(parts[0][1]) > 1 else ()
    rows, height = -(-len(parts) // 2), 140.0
    canvas = Canvas(_WIDTH, rows * height + _LEGEND_ROW * -(-len(named) // 2) + 6)
    for number, (title, series) in enumerate(parts):
        place = (number % 2 * _WIDTH / 2, number // 2 * height, _WIDTH / 2, height)
        _panel(canvas, place, series, title=title, percent=False)
    _legend(canvas, rows * height + 8, named, 2)
    return canvas.uri()


def _panel(
    canvas: Canvas, place: tuple[float, float, float, float], series: Sequence[Line], *, title: str, percent: bool
) -> None:
    """Axes, grid and curves in a rectangle (x, y, width, height)."""
    shown = [line.curve.thinned() for line in series]
    x_values = np.concatenate([curve.epochs for curve in shown])
    y_values = np.concatenate([curve.values for curve in shown])
    y_values = y_values[np.isfinite(y_values)]
    low, high = float(x_values.min()), float(x_values.max())
    margin = _ROOM * (high - low) or 0.5
    low, high = low - margin, high + margin
    top = 1.02 if percent else (1 + _ROOM) * float(y_values.max(initial=0.0))
    bottom, top = (-0.02 if percent else 0.0), top if top > 0 else 1.0
    marks = ticks(0.0, 1.0, 5) if percent else ticks(bottom, top, 6)
    names = [f"{100 * mark:.0f} %" if percent else f"{mark:.6g}" for mark in marks]
    x, y, width, height = place
    left, right = x + 10 + max(length_of(name) for name in names), x + width - 8
    above, below = y + (22 if title else 8), y + height - 34

    def across(value: float) -> float:
        return left + (value - low) / (high - low) * (right - left)

    def up(value: float) -> float:
        return below - (value - bottom) / (top - bottom) * (below - above)

    canvas.words(left, y + 14, title)
    for mark, name in zip(marks, names, strict=True):
        canvas.line([(left, up(mark)), (right, up(mark))], colour=GRID)
        canvas.words(left - 5, up(mark) + 0.35 * FONT, name, anchor="end")
    for mark in ticks(low, high, 6, whole=True):
        canvas.line([(across(mark), above), (across(mark), below)], colour=GRID)
        canvas.words(across(mark), below + 13, f"{mark:.0f}", anchor="middle")
    canvas.words((left + right) / 2, below + 28, "epoch", anchor="middle")
    canvas.line([(left, above), (left, below), (right, below)], colour=FRAME)
    for line, curve in zip(series, shown, strict=True):
        for piece in _pieces(curve):
            points = [(across(float(epoch)), up(float(value))) for epoch, value in piece]
            if len(points) == 1:
                canvas.dot(*points[0], colour=line.colour)
            else:
                canvas.line(points, colour=line.colour, width=1.9, dash=line.dash)


def _pieces(curve: Curve) -> list[list[tuple[float, float]]]:
    """The curve's points, cut where a value is not a number."""
    pieces: list[list[tuple[float, float]]] = [[]]
    for epoch, value in zip(curve.epochs.tolist(), curve.values.tolist(), strict=True):
        if math.isfinite(value):
            pieces[-1].append((epoch, value))
        else:
            pieces.append([])
    return [piece for piece in pieces if piece]


def _legend(canvas: Canvas, y: float, series: Sequence[Line], columns: int) -> None:
    for number, line in enumerate(series):
        left = 8 + number % columns * (_WIDTH - 8) / columns
        middle = y + number // columns * _LEGEND_ROW
        canvas.line([(left, middle), (left + 22, middle)], colour=line.colour, width=1.9, dash=line.dash)
        canvas.words(left + 28, middle + 3.5, line.label, size=9.5)


def matrix(confusion: Confusion) -> str:
    """Counts in cells that are shaded by their share of the row."""
    counts = confusion.counts
    share = counts / np.maximum(counts.sum(1, keepdims=True), 1)
    names = [short(name, 12) for name in confusion.names]
    long = max(map(len, names), default=0) > 3
    side = 86 + 24.5 * max(5, len(names))
    widest = max(map(length_of, names), default=0.0)
    canvas = Canvas(max(331.0, min(533.0, side + 43)), min(533.0, side))
    left, above = widest + 28, 6.0
    below = canvas.height - 24 - (widest + 4 if long else 14)
    wide, high = (canvas.width - 8 - left) / max(1, len(names)), (below - above) / max(1, len(names))
    size = 9 if len(counts) <= 12 else 7
    for row, name in enumerate(names):
        middle = above + (row + 0.5) * high
        canvas.words(left - 5, middle + 0.35 * FONT, name, anchor="end")
        across = left + (row + 0.5) * wide
        if long:
            canvas.words(across + 0.35 * FONT, below + 5, name, anchor="end", upwards=True)
        else:
            canvas.words(across, below + 13, name, anchor="middle")
        for column in range(len(names)):
            tint = float(share[row, column])
            canvas.box(left + column * wide, above + row * high, wide, high, colour=shade(tint))
            if counts[row, column]:
                colour = "#ffffff" if tint > 0.55 else "#1d2530"
                place = left + (column + 0.5) * wide, middle + 0.35 * size
                canvas.words(*place, str(counts[row, column]), anchor="middle", size=size, colour=colour)
    canvas.words((left + canvas.width - 8) / 2, canvas.height - 8, confusion.columns, anchor="middle")
    canvas.words(14, (above + below) / 2, confusion.rows, anchor="middle", upwards=True)
    return canvas.uri()
