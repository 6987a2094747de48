"""The rarer figures as SVG texts, by matplotlib; colours that colour-blind readers can tell apart.

matplotlib takes most of a second to import, so that is done when the first of them is drawn.
"""

import base64
import io
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from protocon.report.collect import ClassHistory, ClusterMembers
from protocon.report.svg_canvas import short

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


def _drawn(draw: Callable[[Any], None], width: float, height: float) -> str:
    """Draw and return the figure as a data URI of SVG."""
    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    with matplotlib.rc_context(_STYLE), warnings.catch_warnings():
        # A class name may be in a script that the measuring font lacks; the reader's font has it.
        warnings.simplefilter("ignore", UserWarning)
        figure = Figure(figsize=(width, height), layout="constrained")
        FigureCanvasSVG(figure)
        draw(figure)
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    return "data:image/svg+xml;base64," + base64.b64encode(text.getvalue().encode()).decode()


def histogram(sizes: ClusterMembers) -> str:
    """Cluster sizes, with γ and n as upright lines."""

    def draw(figure: Any) -> None:
        from matplotlib.ticker import MaxNLocator

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
        from matplotlib.ticker import MaxNLocator, PercentFormatter

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
