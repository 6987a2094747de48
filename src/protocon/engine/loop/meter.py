"""An epoch's running means, kept on the device and read once."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from protocon.base import distributed
from protocon.data.loading.loader import RawBatch
from protocon.errors import TrainingError
from protocon.types import Step

_SOURCES = ("classifier", "cluster", "refined")


@dataclass(frozen=True)
class Unchecked:
    """A step whose terms have not been looked at yet."""

    number: int
    """Steps of the epoch up to and with it."""
    terms: dict[str, Tensor]
    labelled_index: Tensor
    index: Tensor


Explain = Callable[[Unchecked, list[str]], TrainingError]
"""The error for a step with such bad terms."""


class EpochMeter:
    """Means of every logged term, pseudo-labels by class, and their accuracy where the truth is known.

    Args:
        truth: true classes of the unlabelled set, (N,), −1 where unknown.
        classes: C.
        explain: makes the error for a step whose terms are not finite.
    """

    def __init__(self, truth: Tensor, *, classes: int, explain: Explain) -> None:
        self.truth = truth
        self.steps = 0
        self._explain = explain
        self._sums: dict[str, Tensor] = {}
        self._right: dict[str, Tensor] = {}
        self._known = torch.zeros((), dtype=torch.int64, device=truth.device)
        self._by_class = torch.zeros(classes, dtype=torch.int64, device=truth.device)
        self._numbers = torch.arange(classes, device=truth.device)
        self._any_known = bool((truth >= 0).any())
        self._unchecked: Unchecked | None = None

    def add(self, step: Step, rows: dict[str, Tensor], raw: RawBatch) -> None:
        """Take in a step's terms and the gathered rows of its global batch.

        Args:
            step: with its terms, of this process.
            rows: of all processes.
            raw: the batch, to name its images if a term is not finite.
        """
        self.check_finite()
        self.steps += 1
        self._unchecked = Unchecked(self.steps, step.terms, raw.labelled_index, raw.index)
        for name, value in step.terms.items():
            self._sums[name] = self._sums[name] + value if name in self._sums else value.clone()
        if "index" not in rows:
            return
        if self._any_known:
            self._count_right(rows)
        if "refined" in rows:
            # Not bincount, whose size the device would have to tell first.
            self._by_class = self._by_class + (rows["refined"][:, None] == self._numbers).sum(0)

    def _count_right(self, rows: dict[str, Tensor]) -> None:
        truth = self.truth[rows["index"]]
        known = truth >= 0
        self._known = self._known + known.sum()
        for source in _SOURCES:
            if source in rows:
                right = ((rows[source] == truth) & known).sum()
                self._right[source] = self._right[source] + right if source in self._right else right

    def check_finite(self) -> None:
        """Stop if a term of the step before is not finite. One step late: no waiting for the device."""
        seen = self._unchecked
        if seen is None or not seen.terms:
            return
        values = torch.stack([value.float() for value in seen.terms.values()])
        if not bool(values.isfinite().all()):
            bad = [name for name, value in seen.terms.items() if not bool(value.isfinite())]
            raise self._explain(seen, bad)

    def means(self) -> dict[str, float]:
        """Means so far, of this process: it may ask alone, whenever its display wants them."""
        return dict(zip(self._sums, self._own_means().tolist(), strict=True))

    def _own_means(self) -> Tensor:
        sums = [value.double() for value in self._sums.values()]
        return torch.stack(sums) / self.steps if sums else torch.empty(0)

    def labels_by_class(self) -> list[int]:
        """How many images had each class as their pseudo-label; empty for a method without pseudo-labels."""
        counts: list[int] = self._by_class.tolist()
        return counts if sum(counts) else []

    def close(self) -> dict[str, float]:
        """The epoch's numbers, over all processes."""
        self.check_finite()
        row = dict(zip(self._sums, distributed.mean(self._own_means()).tolist(), strict=True))
        known = int(self._known)
        if known > 0:
            for source in _SOURCES:
                if source in self._right:
                    row[f"pseudo_accuracy_{source}"] = int(self._right[source]) / known
        if counts := self.labels_by_class():
            row["classes_predicted"] = sum(count > 0 for count in counts)
            row["largest_class_share"] = max(counts) / sum(counts)
        return row

    def state(self) -> dict[str, Tensor]:
        """Everything that an epoch's second half must know of its first. All processes must ask together.

        Sums are those of each process, (processes,): the mean over processes is taken at the end.
        """
        # Numbered: a checkpoint keeps no order, but the lines of metrics.jsonl have one.
        own = {f"sums.{place:03d}.{name}": value.reshape(1) for place, (name, value) in enumerate(self._sums.items())}
        return (
            distributed.gather_rows(own)
            | {f"right.{source}": value for source, value in self._right.items()}
            | {"known": self._known, "by_class": self._by_class}
        )

    def load(self, state: Mapping[str, Tensor], steps: int) -> None:
        """Continue from a state. With another number of processes each gets the mean: the epoch's means stay right."""
        device, rank, world = self.truth.device, distributed.rank(), distributed.world_size()
        self.steps = steps
        for name in sorted(state):
            kind, _, key = name.partition(".")
            value = state[name].to(device)
            if kind == "sums":
                self._sums[key.partition(".")[2]] = value[rank] if len(value) == world else value.mean()
            elif kind == "right":
                self._right[key] = value
        if "known" in state:
            self._known, self._by_class = state["known"].to(device), state["by_class"].to(device)
