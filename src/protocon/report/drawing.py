"""Figures as SVG texts: one look for all, colours that colour-blind readers can tell apart."""

import base64
import io
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib
import numpy as np
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter

from protocon.report.collect import ClassHistory, ClusterMembers, Confusion, Curve

BLUE, ORANGE, GREEN, BLACK, PURPLE, SKY, AMBER = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#222222",
    "#CC79A7",
    "#56B4E9",
    "#B8860B",
)
COLOURS = (BLUE, ORANGE, GREEN, PURPLE, BLACK, SKY, AMBER)
"""After Okabe and Ito; lines differ in their dashes too."""
DASHES = ("-", "--", "-.", ":")

_STYLE: Any = {
    "font.family": "sans-serif",
    "font.size": 10.5,
    "axes.titlesize": 10.5,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#8a919c",
    "axes.labelcolor": "#3d4450",
    "axes.grid": True,
    "grid.color": "#e3e6eb",
    "grid.linewidth": 0.8,
    "xtick.color": "#3d4450",
    "ytick.color": "#3d4450",
    "lines.linewidth": 1.9,
    "legend.frameon": False,
    "legend.fontsize": 9.5,
    # Text stays text: small files, sharp at any size, in the reader's own font.
    "svg.fonttype": "none",
    "svg.hashsalt": "protocon",
    # A class may be called $5$.
    "text.parse_math": False,
}
_NAME_LENGTH = 16


@dataclass(frozen=True)
class Line:
    """A curve with its name and look."""

    label: str
    curve: Curve
    colour: str
    dash: str = "-"


def _drawn(draw: Callable[[Any], None], width: float, height: float) -> str:
    """Draw and return the figure as a data URI of SVG."""
    with matplotlib.rc_context(_STYLE), warnings.catch_warnings():
        # A class name may be in a script that the measuring font lacks; the reader's font has it.
        warnings.simplefilter("ignore", UserWarning)
        figure = Figure(figsize=(width, height), layout="constrained")
        FigureCanvasSVG(figure)
        draw(figure)
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    return "data:image/svg+xml;base64," + base64.b64encode(text.getvalue().encode()).decode()


def short(name: str, length: int = _NAME_LENGTH) -> str:
    """A name that fits beside an axis."""
    clean = " ".join(name.split())
    return clean if len(clean) <= length else clean[: length - 1] + "…"


def lines(series: Sequence[Line], *, percent: bool, legend: bool) -> str:
    """Curves over the epochs in one frame; shares on an axis from 0 to 100 %, anything else from 0 on.

    Args:
        series: curves with their names and colours.
        percent: whether values are shares.
        legend: whether to name the curves in the frame.
    """

    def draw(figure: Any) -> None:
        _panel(figure.add_subplot(), series, title="", percent=percent)
        if legend:
            columns = 2 if max(len(line.label) for line in series) > 14 else min(4, len(series))
            figure.legend(loc="outside lower left", ncols=columns)

    legend_rows = -(-len(series) // 2) if legend else 0
    return _drawn(draw, 5.6, 3.1 + 0.16 * legend_rows)


def panels(parts: Sequence[tuple[str, Sequence[Line]]]) -> str:
    """Small frames side by side, two in a row, each with its own scale."""

    def draw(figure: Any) -> None:
        rows = -(-len(parts) // 2)
        for number, (title, series) in enumerate(parts, start=1):
            _panel(figure.add_subplot(rows, 2, number), series, title=title, percent=False)
        handles, labels = figure.axes[0].get_legend_handles_labels()
        if len(labels) > 1:
            figure.legend(handles, labels, loc="outside lower left", ncols=2)

    return _drawn(draw, 5.6, 0.5 + 1.9 * -(-len(parts) // 2))


def _panel(axes: Any, series: Sequence[Line], *, title: str, percent: bool) -> None:
    for line in series:
        shown = line.curve.thinned()
        marker = "o" if len(shown) == 1 else None
        axes.plot(shown.epochs, shown.values, label=line.label, color=line.colour, linestyle=line.dash, marker=marker)
    axes.set_title(title)
    axes.set_xlabel("epoch")
    axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
    if percent:
        axes.set_ylim(-0.02, 1.02)
        axes.yaxis.set_major_formatter(PercentFormatter(1.0, symbol=" %"))
    else:
        axes.set_ylim(bottom=0.0)


def histogram(sizes: ClusterMembers) -> str:
    """Cluster sizes, with γ and n as upright lines."""

    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        low, high = int(sizes.members.min()), int(sizes.members.max())
        step = max(1, -(-(high - low + 1) // 24))
        edges = np.arange(low, high + step + 1, step) - 0.5
        axes.hist(sizes.members, bins=edges, color=SKY, edgecolor="white", linewidth=0.6)
        axes.axvline(sizes.gamma, color=ORANGE, linewidth=2, label=f"γ = {sizes.gamma:g}: smallest wanted")
        axes.axvline(
            sizes.neighbours,
            color=BLACK,
            linewidth=2,
            linestyle="--",
            label=f"n = {sizes.neighbours:g}: the mean aimed at",
        )
        axes.set_xlabel("images in a cluster")
        axes.set_ylabel("clusters")
        axes.yaxis.set_major_locator(MaxNLocator(integer=True))
        axes.grid(axis="x", visible=False)
        figure.legend(loc="outside lower left", ncols=2)

    return _drawn(draw, 5.6, 3.2)


def heatmap(history: ClassHistory) -> str:
    """Classes downwards, epochs to the right, a share as a shade from dark (0 %) to bright (100 %)."""

    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        edges = _edges(history.epochs)
        rows = np.arange(len(history.names) + 1)
        mesh = axes.pcolormesh(
            edges, rows, np.ma.masked_invalid(history.values), cmap="cividis", vmin=0, vmax=1, rasterized=True
        )
        axes.set_facecolor("#d9dce1")
        axes.grid(visible=False)
        axes.invert_yaxis()
        axes.set_yticks(rows[:-1] + 0.5, [short(name) for name in history.names])
        axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
        axes.set_xlabel("epoch")
        bar = figure.colorbar(mesh, ax=axes, pad=0.02, aspect=30)
        bar.ax.yaxis.set_major_formatter(PercentFormatter(1.0, symbol=" %"))
        bar.outline.set_visible(False)

    return _drawn(draw, 5.6, 1.1 + 0.25 * max(4, len(history.names)))


def _edges(epochs: np.ndarray) -> np.ndarray:
    """Borders between epochs, for cells around them."""
    if len(epochs) == 1:
        return np.array([epochs[0] - 0.5, epochs[0] + 0.5])
    middle = (epochs[1:] + epochs[:-1]) / 2
    return np.concatenate([[2 * epochs[0] - middle[0]], middle, [2 * epochs[-1] - middle[-1]]])


def matrix(confusion: Confusion) -> str:
    """Counts in cells that are shaded by their share of the row."""

    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        counts = confusion.counts
        share = counts / np.maximum(counts.sum(1, keepdims=True), 1)
        axes.imshow(share, cmap="Blues", vmin=0, vmax=1, aspect="auto")
        size = 9 if len(counts) <= 12 else 7
        for row, column in np.argwhere(counts > 0):
            colour = "white" if share[row, column] > 0.55 else "#1d2530"
            axes.text(column, row, str(counts[row, column]), ha="center", va="center", fontsize=size, color=colour)
        names = [short(name, 12) for name in confusion.names]
        long = max(map(len, names), default=0) > 3
        axes.set_xticks(range(len(names)), names, rotation=90 if long else 0)
        axes.set_yticks(range(len(names)), names)
        axes.set_xlabel(confusion.columns)
        axes.set_ylabel(confusion.rows)
        axes.grid(visible=False)
        axes.tick_params(length=0)

    side = 1.2 + 0.34 * max(5, len(confusion.names))
    return _drawn(draw, max(4.6, min(7.4, side + 0.6)), min(7.4, side))


def scatter(places: np.ndarray, classes: Sequence[str | None]) -> str:
    """Points (n, 2) in a square without axes, one colour for each of the most frequent classes."""
    names = [name for name, _ in Counter(name for name in classes if name is not None).most_common()]
    shown = sorted(names[: 3 * len(COLOURS)])
    markers = ("o", "^", "s")

    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        rest = np.array([name not in shown for name in classes])
        if rest.any():
            axes.scatter(*places[rest].T, s=9, color="#8a919c", linewidths=0, label="other" if names else None)
        for number, name in enumerate(shown):
            mine = np.array([one == name for one in classes])
            look = {"color": COLOURS[number % len(COLOURS)], "marker": markers[number // len(COLOURS)]}
            axes.scatter(*places[mine].T, s=14, linewidths=0, alpha=0.85, label=short(name), **look)
        axes.set_xticks([])
        axes.set_yticks([])
        axes.grid(visible=False)
        axes.set_aspect("equal", "datalim")
        if names:
            figure.legend(loc="outside lower left", ncols=4, markerscale=1.6)

    return _drawn(draw, 5.6, 4.6 + 0.2 * -(-len(shown) // 4))
