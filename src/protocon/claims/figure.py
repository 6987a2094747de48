"""The figure of a tested claim, drawn from its result: intervals of the effects, and curves where it has some."""

import io
from pathlib import Path
from typing import Any

from protocon.base.atomic import write_bytes

_ROW = 0.32
_SMALLEST = 2.2
_WIDTH = 8.0
_NAME = 74


def draw(result: dict[str, Any], file: Path) -> None:
    """Write the figure as SVG; the same result gives the same bytes."""
    file.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(file, svg(result).encode())


def svg(result: dict[str, Any]) -> str:
    """The figure's text."""
    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    effects, curves = result["effects"], result["curves"]
    with matplotlib.rc_context({"svg.hashsalt": "protocon", "svg.fonttype": "none", "font.size": 9.0}):
        height = max(_SMALLEST, _ROW * len(effects) + 0.9)
        figure = Figure(figsize=(_WIDTH, height + (2.8 if curves else 0)))
        FigureCanvasSVG(figure)
        ratios = [height, 2.8] if curves else [height]
        grid = figure.add_gridspec(len(ratios), max(1, len(curves)), height_ratios=ratios)
        _intervals(figure.add_subplot(grid[0, :]), effects)
        for place, one in enumerate(curves):
            _lines(figure.add_subplot(grid[1, place]), one)
        figure.set_layout_engine("tight")
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None})
    return text.getvalue()


def _intervals(axes: Any, effects: list[dict[str, Any]]) -> None:
    """A row per effect: the mean, its interval, and where the claim begins."""
    from protocon.report.drawing import BLUE, GREEN, ORANGE

    colours = {"supported": GREEN, "not supported": ORANGE, "undecided": BLUE}
    for row, one in enumerate(reversed(effects)):
        colour = colours[one["verdict"]]
        if one["mean"] is not None:
            axes.plot([one["mean"]], [row], "o", color=colour)
        if one["low"] is not None and one["high"] is not None:
            axes.plot([one["low"], one["high"]], [row, row], color=colour)
        for edge in (one["claimed"], -one["claimed"]) if one["within"] else (one["claimed"],):
            axes.plot([edge, edge], [row - 0.4, row + 0.4], color="#8a919c", linewidth=0.8)
    names = [f"{one['what'][:_NAME]} ({one['unit']})" for one in reversed(effects)]
    axes.set_yticks(range(len(names)), names)
    axes.set_title("mean and 95 % interval; the grey mark is where the claim begins", loc="left", fontsize=9)


def _lines(axes: Any, curves: dict[str, Any]) -> None:
    """Means over seeds, epoch by epoch."""
    from protocon.report.drawing import COLOURS, DASHES

    for place, (name, values) in enumerate(curves["lines"].items()):
        look = {"color": COLOURS[place % len(COLOURS)], "linestyle": DASHES[place % len(DASHES)]}
        axes.plot(range(1, len(values) + 1), values, label=name, **look)
    axes.set_title(curves["title"], loc="left", fontsize=9)
    axes.set_xlabel("epoch")
    axes.legend(frameon=False, fontsize=8)
