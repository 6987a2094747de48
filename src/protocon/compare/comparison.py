"""The numbers of a comparison: accuracy by method and label count, ours against each, and what runs cost."""

from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from protocon.compare.statistics import Difference, SeedSpread, paired_difference, spread

OURS = "protocon"
"""The method that the others are compared with."""
_POINT = 0.01


@dataclass(frozen=True)
class CellRecord:
    """The outcome of one cell. Without a result, accuracy is None and `error` says why."""

    method: str
    labels: int
    """Labels per class."""
    seed: int
    accuracy: float | None
    """Of the run (mean over its last ten epochs, averaged weights) or of the reference, from 0 to 1."""
    seconds: float | None
    memory: float | None
    """Peak main memory of its process, in MiB."""
    run: str | None
    """Its folder."""
    error: str | None = None
    macro_accuracy: float | None = None
    """Mean over classes of the accuracy on each; None in runs of earlier versions, which did not measure it."""

    @property
    def name(self) -> str:
        """Name of its folder."""
        return f"{self.method}-{self.labels}pc-seed{self.seed}"


@dataclass(frozen=True)
class Cost:
    """What the runs of a method took."""

    runs: int
    seconds: float | None
    """Median over the runs: one that had to wait for an hour, on a machine with other work, does not change it."""
    memory: float | None
    """Largest peak of a run, in MiB."""


@dataclass(frozen=True)
class Comparison:
    """All cells of a grid. A missing one is never ignored silently: n says how many values a mean comes from."""

    data: str
    methods: tuple[str, ...]
    labels: tuple[int, ...]
    seeds: int
    records: tuple[CellRecord, ...]
    out: Path | None = None

    @property
    def rows(self) -> tuple[str, ...]:
        """Methods in the tables' order: ours last, as in the paper."""
        return (*(m for m in self.methods if m != OURS), *(m for m in self.methods if m == OURS))

    @property
    def others(self) -> tuple[str, ...]:
        """All methods but ours."""
        return tuple(m for m in self.methods if m != OURS)

    @property
    def failed(self) -> tuple[CellRecord, ...]:
        """Cells without a result."""
        return tuple(record for record in self.records if record.accuracy is None)

    def by_seed(self, method: str, labels: int) -> dict[int, float]:
        """Accuracies of a method with this many labels, by seed."""
        return {
            record.seed: record.accuracy
            for record in self.records
            if record.method == method and record.labels == labels and record.accuracy is not None
        }

    def accuracy(self, method: str, labels: int) -> SeedSpread:
        """Mean and spread over seeds."""
        return spread(list(self.by_seed(method, labels).values()))

    def macro_accuracy(self, method: str, labels: int) -> SeedSpread:
        """The same of the accuracy that counts every class alike."""
        chosen = (record for record in self.records if (record.method, record.labels) == (method, labels))
        return spread([record.macro_accuracy for record in chosen if record.macro_accuracy is not None])

    @property
    def unbalanced(self) -> bool:
        """Whether macro accuracy tells something else than accuracy: a mean differs by a point or more."""
        pairs = [(self.accuracy(m, n).mean, self.macro_accuracy(m, n).mean) for m in self.methods for n in self.labels]
        return any(a is not None and b is not None and abs(a - b) >= _POINT for a, b in pairs)

    def _complete(self, labels: int, methods: tuple[str, ...]) -> dict[str, float]:
        """Means of the methods that have all seeds: a mean over fewer is not comparable with them."""
        spreads = {method: self.accuracy(method, labels) for method in methods}
        return {m: s.mean for m, s in spreads.items() if s.n == self.seeds and s.mean is not None}

    def best(self, labels: int) -> set[str]:
        """The methods with the highest mean as it is shown (two decimals of a percent), among those with all seeds."""
        shown = {method: round(100 * mean, 2) for method, mean in self._complete(labels, self.methods).items()}
        return {method for method, mean in shown.items() if mean == max(shown.values())}

    def delta(self, labels: int) -> tuple[str, float] | None:
        """The best other method and our mean minus its mean; None unless both have all seeds."""
        means = self._complete(labels, self.methods)
        baselines = {method: mean for method, mean in means.items() if method != OURS}
        if OURS not in means or not baselines:
            return None
        best = max(baselines, key=lambda method: baselines[method])
        return best, means[OURS] - baselines[best]

    def difference(self, method: str, labels: int) -> Difference:
        """Ours − another method over the seeds that both have."""
        return paired_difference(self.by_seed(OURS, labels), self.by_seed(method, labels))

    def cost(self, method: str, labels: int | None = None) -> Cost:
        """What a method's finished runs took: all of them, or those with this many labels."""
        done = [
            record
            for record in self.records
            if record.method == method and labels in (None, record.labels) and record.accuracy is not None
        ]
        seconds = [record.seconds for record in done if record.seconds is not None]
        memory = [record.memory for record in done if record.memory is not None]
        return Cost(len(done), median(seconds) if seconds else None, max(memory, default=None))

    def content(self) -> dict[str, Any]:
        """Everything as plain data, for JSON. Accuracies are fractions, not percent."""
        best = {labels: self.best(labels) for labels in self.labels}
        deltas = {labels: self.delta(labels) for labels in self.labels}
        ours = OURS in self.methods
        return {
            "out": None if self.out is None else str(self.out),
            "data": self.data,
            "methods": list(self.methods),
            "labels_per_class": list(self.labels),
            "seeds": self.seeds,
            "accuracy": [
                {"method": m, "labels": n, **asdict(self.accuracy(m, n)), "best": m in best[n]}
                for m in self.rows
                for n in self.labels
            ],
            "macro_accuracy": [
                {"method": m, "labels": n, **asdict(self.macro_accuracy(m, n))} for m in self.rows for n in self.labels
            ],
            "delta": [
                {"labels": n, "best_baseline": found and found[0], "delta": found and found[1]}
                for n, found in deltas.items()
                if ours
            ],
            "differences": [
                {"method": m, "labels": n, **asdict(self.difference(m, n))}
                for m in self.others
                for n in self.labels
                if ours
            ],
            "cost": [{"method": m, **asdict(self.cost(m))} for m in self.rows],
            "cells": [asdict(record) for record in self.records],
            "failed": [{"cell": record.name, "error": record.error} for record in self.failed],
        }
