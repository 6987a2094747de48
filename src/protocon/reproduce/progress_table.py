"""A table of the paper beside what was measured: as far as its cells are finished."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from protocon.compare.statistics import spread
from protocon.paper.paper_cells import TABLES, PaperCell

_HEADING = ("cell", "paper", "measured", "difference", "within the paper's ±", "state")


@dataclass(frozen=True)
class Measured:
    """A cell with the accuracies of its finished runs."""

    cell: PaperCell
    accuracies: Mapping[int, float]
    """Test accuracy in percent by seed."""
    seeds: int
    """Runs that it should have."""
    hindrance: str | None = None
    """Why it cannot be run, where that is so."""

    @property
    def state(self) -> str:
        """In a word or two."""
        if len(self.accuracies) >= self.seeds:
            return "finished"
        done = f"{len(self.accuracies)} of {self.seeds} runs"
        return (
            done if self.hindrance is None else self.hindrance if not self.accuracies else f"{done}; {self.hindrance}"
        )

    def content(self) -> dict[str, Any]:
        """As plain data. Accuracies in percent; `within` is None where the paper has no ±, or runs are missing."""
        found = spread(list(self.accuracies.values()))
        reported = self.cell.reported
        difference = None if found.mean is None or reported is None else found.mean - reported[0]
        within = None
        if difference is not None and reported is not None and reported[1] is not None and found.n >= self.seeds:
            within = abs(difference) <= reported[1]
        return {
            "cell": self.cell.name,
            "paper": None if reported is None else reported[0],
            "paper_spread": None if reported is None else reported[1],
            "n": found.n,
            "mean": found.mean,
            "std": found.std,
            "difference": difference,
            "within": within,
            "state": self.state,
        }

    def row(self) -> tuple[str, ...]:
        """As texts."""
        content = self.content()
        within = {None: "–", True: "yes", False: "no"}[content["within"]]
        difference = "–" if content["difference"] is None else f"{content['difference']:+.2f}".replace("-", "−")
        paper = _figure(content["paper"], content["paper_spread"])
        measured = _figure(content["mean"], content["std"])
        few = "" if not 0 < content["n"] < self.seeds else f" (n = {content['n']})"
        return self.cell.name, paper, measured + few, difference, within, self.state


def _figure(mean: float | None, std: float | None) -> str:
    if mean is None:
        return "–"
    return f"{mean:.2f}" + ("" if std is None else f" ± {std:.2f}")


def markdown(table: str, cells: Sequence[Measured], changes: Sequence[str]) -> str:
    """The table as Markdown.

    Args:
        table: its name.
        cells: its rows.
        changes: settings that are not the recipes'.
    """
    lines = [f"### {TABLES[table].title}", ""]
    if changes:
        lines += [f"**Not the paper's recipes:** changed by {', '.join(changes)}.", ""]
    lines += [f"| {' | '.join(_HEADING)} |", "|" + "---|" * len(_HEADING)]
    lines += [f"| {' | '.join(cell.row())} |" for cell in cells]
    return "\n".join(lines) + "\n"
