"""An epoch's running means, kept on the device and read once."""

import torch
from torch import Tensor

from protocon.distributed import mean
from protocon.errors import TrainingError
from protocon.types import Step

_SOURCES = ("classifier", "cluster", "refined")


class EpochMeter:
    """Means of every logged term, and accuracy of each kind of pseudo-label where the truth is known.

    Args:
        truth: hidden classes of the unlabelled set, (N,), −1 where unknown.
    """

    def __init__(self, truth: Tensor) -> None:
        self.truth = truth
        self._sums: dict[str, Tensor] = {}
        self._steps = 0
        self._right: dict[str, Tensor] = {}
        self._known: Tensor | None = None
        self._unchecked: dict[str, Tensor] = {}

    def add(self, step: Step, rows: dict[str, Tensor]) -> None:
        """Take in a step's terms and the gathered rows of its global batch."""
        self.check_finite()
        self._unchecked = step.terms
        for name, value in step.terms.items():
            self._sums[name] = self._sums[name] + value if name in self._sums else value.clone()
        self._steps += 1
        if "index" not in rows:
            return
        truth = self.truth[rows["index"]]
        known = truth >= 0
        self._known = known.sum() if self._known is None else self._known + known.sum()
        for source in _SOURCES:
            if source in rows:
                right = ((rows[source] == truth) & known).sum()
                self._right[source] = self._right[source] + right if source in self._right else right

    def check_finite(self) -> None:
        """Stop if a term of the step before is not finite. One step late: no waiting for the device."""
        if not self._unchecked:
            return
        values = torch.stack([value.float() for value in self._unchecked.values()])
        if bool(values.isfinite().all()):
            return
        bad = [f"{k} = {float(v)}" for k, v in self._unchecked.items() if not bool(v.isfinite())]
        raise TrainingError(
            f"training stopped: {', '.join(bad)} in step {self._steps} of the epoch. "
            "The last checkpoint is whole. Try a lower optim.lr, or run.precision=32-true"
        )

    def means(self) -> dict[str, float]:
        """Means so far, over processes too."""
        if not self._steps:
            return {}
        names = list(self._sums)
        values = mean(torch.stack([self._sums[n].double() for n in names]) / self._steps).tolist()
        return dict(zip(names, values, strict=True))

    def close(self) -> dict[str, float]:
        """The epoch's numbers."""
        self.check_finite()
        row = self.means()
        if self._known is not None and int(self._known) > 0:
            for source, right in self._right.items():
                row[f"pseudo_accuracy_{source}"] = int(right) / int(self._known)
        return row
