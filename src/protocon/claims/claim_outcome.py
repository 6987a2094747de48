"""Finished runs as numbers by seed: what effects are computed from."""

import csv
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from protocon.claims.claim import Need
from protocon.claims.field import Field
from protocon.compare.statistics import Difference, paired_difference
from protocon.errors import RunError
from protocon.runs.run_folder import RunFolder

Rows = list[dict[str, Any]]
"""A run's metrics, one row per epoch."""
Reader = Callable[[Rows], float]
"""A number from a run's metrics."""


@dataclass(frozen=True)
class Outcome:
    """What the runs of a field gave."""

    field: Field
    folders: Mapping[Need, Mapping[int, RunFolder]]
    """Run folders by need and seed."""
    accuracies: Mapping[Need, Mapping[int, float]]

    def accuracy(self, need: Need) -> dict[int, float]:
        """Test accuracy by seed, in percent: mean over the last ten epochs, averaged weights."""
        if need not in self.accuracies:
            raise RunError(f"there is no run of {need.short}; this claim needs it")
        return {seed: 100 * value for seed, value in self.accuracies[need].items()}

    def rows(self, need: Need) -> dict[int, Rows]:
        """Metrics by seed."""
        return {seed: folder.metrics() for seed, folder in self._folders(need).items()}

    def classes(self, need: Need) -> dict[int, Rows]:
        """Accuracy and purity of every class by seed, one row per epoch."""
        return {seed: _lines(folder.classes_file) for seed, folder in self._folders(need).items()}

    def read(self, need: Need, reader: Reader) -> dict[int, float]:
        """A number of each run's metrics, by seed."""
        return {seed: reader(rows) for seed, rows in self.rows(need).items()}

    def ahead(self, ours: Need, theirs: Need, reader: Reader | None = None) -> Difference:
        """Ours − theirs, paired by seed.

        Args:
            ours: one side's runs.
            theirs: the other side's.
            reader: what to compare; None for the accuracy, in points.
        """
        if reader is None:
            return paired_difference(self.accuracy(ours), self.accuracy(theirs))
        return paired_difference(self.read(ours, reader), self.read(theirs, reader))

    def mean_curve(self, need: Need, key: str, *, scale: float = 100.0) -> list[float]:
        """A metric epoch by epoch, averaged over the seeds; epochs without it are left out.

        Args:
            need: whose runs.
            key: of the metric.
            scale: multiplies it.
        """
        runs = [[scale * row[key] for row in rows if key in row] for rows in self.rows(need).values()]
        return [round(sum(values) / len(values), 4) for values in zip(*runs, strict=False)]

    def _folders(self, need: Need) -> Mapping[int, RunFolder]:
        if need not in self.folders:
            raise RunError(f"there are no run folders of {need.short}; this claim needs the course of its runs")
        return self.folders[need]


def from_folders(field: Field, folders: Mapping[Need, Mapping[int, RunFolder]]) -> Outcome:
    """The outcome of finished runs."""
    accuracies = {
        need: {seed: float(folder.result()["test_accuracy"]) for seed, folder in by_seed.items()}
        for need, by_seed in folders.items()
    }
    return Outcome(field, folders, accuracies)


def from_table(field: Field, file: Path) -> Outcome:
    """The outcome of a comparison, from its `cells.csv`: enough for claims about final accuracies."""
    accuracies: dict[Need, dict[int, float]] = {}
    try:
        with file.open(encoding="utf-8", newline="") as lines:
            for row in csv.DictReader(lines):
                if row["accuracy"]:
                    need = Need(row["method"], int(row["labels"]))
                    accuracies.setdefault(need, {})[int(row["seed"])] = float(row["accuracy"])
    except (OSError, KeyError, ValueError) as error:
        raise RunError(f"{file} is not the cells.csv of a comparison: {error!r}") from error
    seeds = max((len(by_seed) for by_seed in accuracies.values()), default=0)
    return Outcome(replace(field, about=f"runs of a comparison ({file.name})", seeds=seeds), {}, accuracies)


def mean_of(key: str, *, first: int = 0, last: float = 1.0, scale: float = 100.0) -> Reader:
    """The mean of a metric over some epochs.

    Args:
        key: of the metric.
        first: number of the first epoch that counts.
        last: share of the run that counts.
        scale: multiplies the mean.
    """

    def read(rows: Rows) -> float:
        values = [row[key] for row in rows[first : max(first + 1, round(last * len(rows)))] if key in row]
        return scale * float(sum(values)) / len(values)

    return read


def last_of(key: str, *, scale: float = 1.0) -> Reader:
    """A metric in the last epoch."""
    return lambda rows: scale * float(rows[-1][key])


def every(needs: Iterable[Sequence[Need]]) -> list[Need]:
    """All needs, each once, in order."""
    return list(dict.fromkeys(need for group in needs for need in group))


def _lines(file: Path) -> Rows:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
