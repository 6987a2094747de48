"""All methods from scratch, as a part of the page of evidence: what is ahead of ProtoCon comes first."""

from collections.abc import Sequence
from dataclasses import dataclass

from protocon.compare.comparison import Comparison
from protocon.compare.statistics import paired_difference
from protocon.compare.variants import base_of

AUTO = "protocon+alignment=dual"
"""ProtoCon as `train` runs it where labels are drawn by class."""
DUAL = "+alignment=dual"
_POINTS = 100


@dataclass(frozen=True)
class ScratchTable:
    """All methods on one data set."""

    comparison: Comparison
    about: str
    command: str


def tables_section(tables: Sequence[ScratchTable]) -> str:
    """The tables as Markdown; '' without any."""
    if not tables:
        return ""
    cells = [_standing(table.comparison, labels) for table in tables for labels in table.comparison.labels]
    known = [one for one in cells if one is not None]
    ahead = sum(one.ahead for one in known)
    lines = [
        "## All methods from scratch",
        "",
        "The same code, network, labels and number of steps for all; test accuracy in percent, mean over the last ten "
        "epochs of the averaged weights, ± standard deviation over draws of the labels. `+alignment=dual` is what "
        "`train` gives ProtoCon where labels are drawn by class: alignment that trusts uniform class frequencies more. "
        "It is an option of the other methods that align, and the fair comparison gives it to them too.",
        "",
        f"**ProtoCon as `train` runs it (`{AUTO}`) has the highest mean of all in {ahead} of {len(known)} cells.** "
        "Cell by cell, with every method that is ahead of it:",
        "",
        *(one.line for one in known),
        "",
    ]
    return "\n".join([*lines, *(_table(table) for table in tables)])


@dataclass(frozen=True)
class _Standing:
    line: str
    ahead: bool


def _standing(comparison: Comparison, labels: int) -> _Standing | None:
    """Who is ahead of ProtoCon in a cell, by how much over the draws that both have; None where it was not run."""
    ours = comparison.by_seed(AUTO, labels)
    if not ours:
        return None
    better = []
    for method in comparison.methods:
        if method == AUTO or _superseded(method, comparison, labels):
            continue
        found = paired_difference(comparison.by_seed(method, labels), ours)
        if found.mean is not None and found.mean > 0:
            interval = (
                "" if found.low is None or found.high is None else f" [{signed(found.low)}, {signed(found.high)}]"
            )
            better.append((found.mean, f"`{method}` by {signed(found.mean)}{interval}"))
    told = "; ".join(text for _, text in sorted(better, reverse=True)) or "none"
    count = f"{len(ours)} draws" if len(ours) > 1 else "1 draw"
    return _Standing(f"- {comparison.data}, {labels} per class ({count}): {told}", not better)


def _superseded(method: str, comparison: Comparison, labels: int) -> bool:
    """Whether it is ours, or stands in the table with ProtoCon's alignment too, which is the fair comparison."""
    return base_of(method) == "protocon" or bool(comparison.by_seed(method + DUAL, labels))


def _table(table: ScratchTable) -> str:
    comparison = table.comparison
    lines = [
        f"### {comparison.data}",
        "",
        f"{table.about}. Command: `{table.command}`",
        "",
        "| method | " + " | ".join(f"{labels} per class" for labels in comparison.labels) + " |",
        "|---|" + "---|" * len(comparison.labels),
    ]
    best = {labels: _best(comparison, labels) for labels in comparison.labels}
    for method in sorted(comparison.methods, key=lambda name: -_mean(comparison, name)):
        cells = [_cell(comparison, method, labels, strong=method == best[labels]) for labels in comparison.labels]
        lines.append(f"| `{method}` | {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def _mean(comparison: Comparison, method: str) -> float:
    """Over all its cells, to sort by."""
    values = [value for labels in comparison.labels for value in comparison.by_seed(method, labels).values()]
    return sum(values) / len(values)


def _best(comparison: Comparison, labels: int) -> str | None:
    """The highest mean among the methods with the most draws."""
    found = {method: comparison.accuracy(method, labels) for method in comparison.methods}
    most = max(one.n for one in found.values())
    means = {method: one.mean for method, one in found.items() if one.n == most and one.mean is not None}
    return max(means, key=lambda method: means[method]) if means else None


def _cell(comparison: Comparison, method: str, labels: int, *, strong: bool) -> str:
    found = comparison.accuracy(method, labels)
    if found.mean is None:
        return "–"
    spread = "" if found.std is None else f" ± {_POINTS * found.std:.1f}"
    count = "" if found.n == comparison.seeds else f" (n = {found.n})"
    text = f"{_POINTS * found.mean:.1f}{spread}{count}"
    return f"**{text}**" if strong else text


def signed(share: float) -> str:
    """Points with their sign, and a true minus."""
    text = f"{_POINTS * share:+.2f}"
    return "0.00" if text in ("+0.00", "-0.00") else text.replace("-", "−")
