"""A comparison as Markdown, CSV and LaTeX files, and on the terminal."""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from protocon.compare.comparison import OURS, Comparison
from protocon.compare.statistics import CONFIDENCE, Difference, SeedSpread
from protocon.engine.loop.checkpoint import write_bytes

NOTHING = "–"
DELTA = "delta against best baseline"
_CELL = ("method", "labels", "seed", "accuracy", "macro_accuracy", "seconds", "memory", "run")
_FILES = "table.md, table.csv, table.tex and cells.csv"
_NEEDS_MARKDOWN_ESCAPE = str.maketrans({"|": r"\|", "\n": " "})
_NEEDS_LATEX_ESCAPE = str.maketrans(
    {character: f"\\{character}" for character in "_%&#${}"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\n": " "}
)


@dataclass(frozen=True)
class Page:
    """A table of texts with its title; `strong` are the (row, column) in bold."""

    title: str
    heading: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    strong: frozenset[tuple[int, int]] = frozenset()
    numbers: bool = True
    """Whether the cells are numbers, which are aligned to the right."""


def write_tables(comparison: Comparison, folder: Path) -> None:
    """Write the tables as Markdown, CSV and LaTeX, and the cells that they are made of."""
    for name, text in (
        ("table.md", to_markdown(comparison)),
        ("table.csv", to_csv(comparison)),
        ("table.tex", to_latex(comparison)),
        ("cells.csv", cells_to_csv(comparison)),
    ):
        write_bytes(folder / name, text.encode())


def accuracy_page(comparison: Comparison) -> Page:
    """One row per method, one column per label count, as in the paper."""
    strong = set()
    rows = []
    for number, method in enumerate(comparison.rows):
        cells = [_accuracy(comparison.accuracy(method, labels), comparison.seeds) for labels in comparison.labels]
        rows.append((method, *cells))
        strong |= {(number, place) for place, n in enumerate(comparison.labels, 1) if method in comparison.best(n)}
    if OURS in comparison.methods:
        deltas = [comparison.delta(labels) for labels in comparison.labels]
        rows.append((DELTA, *(NOTHING if delta is None else _signed(delta[1]) for delta in deltas)))
    plural = "s" if comparison.seeds > 1 else ""
    title = f"Test accuracy on {comparison.data} in %: mean ± standard deviation over {comparison.seeds} seed{plural}"
    return Page(title, ("method", *_heads(comparison)), tuple(rows), frozenset(strong))


def macro_page(comparison: Comparison) -> Page:
    """The mean over classes of the accuracy on each, where that is another number."""
    shown = comparison.rows if comparison.unbalanced else ()
    rows = tuple(
        (method, *(_accuracy(comparison.macro_accuracy(method, n), comparison.seeds) for n in comparison.labels))
        for method in shown
    )
    title = f"Macro accuracy on {comparison.data} in %: every class counts alike, however many images it has"
    return Page(title, ("method", *_heads(comparison)), rows)


def difference_page(comparison: Comparison) -> Page:
    """Ours minus each method, seed by seed, with the interval."""
    rows = tuple(
        (method, *(_difference(comparison.difference(method, n), comparison.seeds) for n in comparison.labels))
        for method in comparison.others
    )
    title = (
        f"{OURS} minus each method on the same labels, in points: mean of the paired differences "
        f"[{100 * CONFIDENCE:.0f} % interval]"
    )
    return Page(title, ("method", *_heads(comparison)), rows)


def cost_page(comparison: Comparison) -> Page:
    """Time and memory of a run."""
    rows = []
    for method in comparison.rows:
        cost = comparison.cost(method)
        seconds = NOTHING if cost.seconds is None else f"{cost.seconds:.1f}"
        rows.append((method, str(cost.runs), seconds, NOTHING if cost.memory is None else f"{cost.memory:.0f}"))
    return Page("Cost of a run", ("method", "runs", "seconds (median)", "memory in MiB (peak)"), tuple(rows))


def failure_page(comparison: Comparison) -> Page:
    """Cells without a result, each with its reason."""
    rows = tuple((record.name, record.error or "") for record in comparison.failed)
    return Page("Cells without a result", ("cell", "error"), rows, numbers=False)


def pages(comparison: Comparison) -> list[Page]:
    """All tables that have rows."""
    every = [accuracy_page(comparison), macro_page(comparison)]
    if OURS in comparison.methods:
        every.append(difference_page(comparison))
    every += [cost_page(comparison), failure_page(comparison)]
    return [page for page in every if page.rows]


def to_markdown(comparison: Comparison) -> str:
    """All tables."""
    return "\n".join(_markdown(page) for page in pages(comparison))


def _markdown(page: Page) -> str:
    lines = [f"### {page.title}", "", _markdown_row(page.heading), "|" + "---|" * len(page.heading)]
    for number, row in enumerate(page.rows):
        shown = [cell.translate(_NEEDS_MARKDOWN_ESCAPE) for cell in row]
        cells = [f"**{cell}**" if (number, place) in page.strong else cell for place, cell in enumerate(shown)]
        lines.append(_markdown_row(cells))
    return "\n".join(lines) + "\n"


def _markdown_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def to_csv(comparison: Comparison) -> str:
    """One line per method and label count with everything in the tables; an empty cell where there is no number.

    Accuracies and differences are fractions, memory is in MiB. `difference` is ours minus the method, `delta` is ours
    minus `best_baseline`, the best of the others.
    """
    lines: list[dict[str, Any]] = []
    for method in comparison.rows:
        for labels in comparison.labels:
            accuracy, cost = comparison.accuracy(method, labels), comparison.cost(method, labels)
            ours = method == OURS
            apart = None if ours or OURS not in comparison.methods else comparison.difference(method, labels)
            delta = comparison.delta(labels) if ours else None
            lines.append(
                {
                    "method": method,
                    "labels": labels,
                    "n": accuracy.n,
                    "mean": accuracy.mean,
                    "std": accuracy.std,
                    "best": int(method in comparison.best(labels)),
                    "difference": apart and apart.mean,
                    "difference_low": apart and apart.low,
                    "difference_high": apart and apart.high,
                    "best_baseline": delta and delta[0],
                    "delta": delta and delta[1],
                    "seconds": cost.seconds,
                    "memory": cost.memory,
                }
            )
    return _csv(lines)


def cells_to_csv(comparison: Comparison) -> str:
    """One line per cell; accuracy as a fraction, memory in MiB, empty where there is no result."""
    return _csv([{column: getattr(record, column) for column in _CELL} for record in comparison.records])


def _csv(lines: Sequence[Mapping[str, Any]]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(lines[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows({key: "" if value is None else value for key, value in line.items()} for line in lines)
    return text.getvalue()


def to_latex(comparison: Comparison) -> str:
    r"""All tables, the first in the paper's form; needs \usepackage{booktabs}."""
    return "\n".join(_tabular(page) for page in pages(comparison))


def _tabular(page: Page) -> str:
    kind = "c" if page.numbers else "l"
    lines = [
        f"% {page.title}; \\usepackage{{booktabs}}",
        rf"\begin{{tabular}}{{l{kind * (len(page.heading) - 1)}}}",
        r"\toprule",
        " & ".join(page.heading) + r" \\",
        r"\midrule",
    ]
    for number, row in enumerate(page.rows):
        if row[0] == OURS and number:
            lines.append(r"\midrule")
        name = rf"\emph{{{row[0]}}}" if row[0] == DELTA else _latex(row[0], strong=False)
        cells = [_latex(cell, strong=(number, place) in page.strong) for place, cell in enumerate(row[1:], 1)]
        lines.append(" & ".join((name, *cells)) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"]) + "\n"


def _latex(cell: str, *, strong: bool) -> str:
    if cell == NOTHING:
        return "--"
    text = cell.translate(_NEEDS_LATEX_ESCAPE)
    text = text.replace(" ± ", r"$\pm$").replace("−", "$-$").replace("n = ", "$n$ = ")
    return rf"\textbf{{{text}}}" if strong else text


def show(comparison: Comparison, console: Console) -> None:
    """Print all tables."""
    for page in pages(comparison):
        table = Table(title=page.title, title_justify="left")
        for place, heading in enumerate(page.heading):
            table.add_column(heading, justify="right" if place and page.numbers else "left", overflow="fold")
        for number, row in enumerate(page.rows):
            strong = [(number, place) in page.strong for place in range(len(row))]
            table.add_row(*(Text(c, style="bold" if s else "") for c, s in zip(row, strong, strict=True)))
        console.print(table)
    if comparison.out is not None:
        console.print(f"{_FILES} in {comparison.out}", markup=False, highlight=False)


def _heads(comparison: Comparison) -> tuple[str, ...]:
    return tuple(f"{labels} per class" for labels in comparison.labels)


def _accuracy(values: SeedSpread, seeds: int) -> str:
    if values.mean is None:
        return NOTHING
    spread = "" if values.std is None else f" ± {100 * values.std:.2f}"
    return f"{100 * values.mean:.2f}{spread}{_count(values.n, seeds)}"


def _difference(values: Difference, seeds: int) -> str:
    if values.mean is None:
        return NOTHING
    interval = ""
    if values.low is not None and values.high is not None:
        interval = f" [{_signed(values.low)}, {_signed(values.high)}]"
    return f"{_signed(values.mean)}{interval}{_count(values.n, seeds)}"


def _count(n: int, seeds: int) -> str:
    """How many seeds a number comes from, if not from all of them."""
    return "" if n == seeds else f" (n = {n})"


def _signed(share: float) -> str:
    """A difference in points, with its sign; a true minus, as wide as the plus."""
    text = f"{100 * share:+.2f}"
    return "0.00" if text in ("+0.00", "-0.00") else text.replace("-", "−")
