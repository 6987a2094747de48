"""Several claims on one field: their runs, then result after result."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from protocon.claims.claim import Need
from protocon.claims.claim_outcome import Outcome, every, from_table
from protocon.claims.claims_runner import run_needs
from protocon.claims.field import Field
from protocon.claims.figure import draw
from protocon.claims.results import result_of, save
from protocon.claims.table import chosen


@dataclass(frozen=True)
class Campaign:
    """How claims are tested."""

    field: Field
    out: Path
    """Folder of the runs."""
    results: Path | None = None
    """Folder of the results; by default in that of the runs."""
    workers: int = 1
    cells: Path | None = None
    """A comparison's cells.csv, in place of runs."""
    command: str = ""
    overrides: Sequence[str] = ()
    """`key=value` over the field's settings, for all runs."""

    def run(self, names: list[str], console: Console) -> Iterator[dict[str, Any]]:
        """Test claims one after the other; each result is on disk when it is returned."""
        folder = self.results or self.out / "results"
        for claim in chosen(names):
            outcome = self._outcome(every([claim.needs(self.field)]), console)
            result = result_of(claim, outcome, command=self.command)
            save(result, folder)
            draw(result, folder / f"{claim.id}-{self.field.name}.svg")
            yield result

    def _outcome(self, needs: list[Need], console: Console) -> Outcome:
        if self.cells is not None:
            return from_table(self.field, self.cells)
        if not needs:
            return Outcome(self.field, {}, {})
        return run_needs(
            self.field, needs, out=self.out, workers=self.workers, overrides=self.overrides, console=console
        )
