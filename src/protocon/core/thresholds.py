"""Confidence thresholds that follow the learning: FlexMatch's by class, FreeMatch's of both kinds."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from protocon.core.bank import NOT_SEEN, smallest_integer


class FlexibleThresholds(nn.Module):
    """FlexMatch: a class's threshold grows with the samples that were last predicted as it with confidence.

    `record` holds each sample's last confident prediction, −1 for a sample that never had one.

    Args:
        samples: N.
        classes: C.
        threshold: τ, the largest that a threshold can be, and the confidence that gets on record.
        warm_up: let samples without a record hold all thresholds down (Eq. 11).
        convex: map the learning status by x / (2 − x) (Eq. 12); else take it as it is (Eq. 7).
    """

    record: Tensor
    counts: Tensor

    def __init__(
        self, samples: int, *, classes: int, threshold: float, warm_up: bool = True, convex: bool = True
    ) -> None:
        super().__init__()
        self.threshold = threshold
        self.warm_up = warm_up
        self.convex = convex
        self.register_buffer("record", torch.full((samples,), NOT_SEEN, dtype=smallest_integer(classes - 1)))
        # σ(c) (Eq. 5), kept beside the record so that a step need not count N samples.
        self.register_buffer("counts", torch.zeros(classes, dtype=torch.int64))

    def status(self) -> Tensor:
        """Learning status β(c) in [0, 1], (C,) (Eq. 6, or Eq. 11 with the warm-up)."""
        largest = self.counts.max()
        if self.warm_up:
            largest = torch.maximum(largest, len(self.record) - self.counts.sum())
        return self.counts / largest.clamp(min=1)

    def forward(self) -> Tensor:
        """T(c), (C,)."""
        status = self.status()
        mapped = status / (2.0 - status) if self.convex else status
        return mapped * self.threshold

    @torch.no_grad()
    def update(self, index: Tensor, *, label: Tensor, confidence: Tensor) -> None:
        """Put a global batch's confident predictions on record.

        Args:
            index: positions of the samples, (n,), none twice.
            label: predicted classes, (n,).
            confidence: probabilities of these, (n,).
        """
        before = self.record[index].long()
        after = torch.where(confidence >= self.threshold, label, before)
        self.record[index] = after.to(self.record.dtype)
        self.counts += self._count(after) - self._count(before)

    def _count(self, label: Tensor) -> Tensor:
        # Column 0 takes the samples without a record and is dropped.
        return F.one_hot(label + 1, len(self.counts) + 1).sum(dim=0)[1:]


class SelfAdaptiveThresholds(nn.Module):
    """FreeMatch: the mean confidence is the threshold, lowered for classes that are predicted less.

    Args:
        classes: C.
        momentum: λ of the three running means.
    """

    level: Tensor
    marginal: Tensor
    histogram: Tensor

    def __init__(self, classes: int, *, momentum: float) -> None:
        super().__init__()
        self.momentum = momentum
        self.register_buffer("level", torch.full((), 1.0 / classes))  # τ_t
        self.register_buffer("marginal", torch.full((classes,), 1.0 / classes))  # p̃_t
        self.register_buffer("histogram", torch.full((classes,), 1.0 / classes))  # h̃_t

    def forward(self) -> Tensor:
        """τ_t(c), (C,) (Eq. 7)."""
        return self.marginal / self.marginal.max() * self.level

    @torch.no_grad()
    def update(self, probs: Tensor) -> None:
        """Take in a global batch's predictions (n, C) (Eq. 5, 6 and 10)."""
        probs = probs.to(self.marginal.dtype)
        confidence, label = probs.max(dim=-1)
        shares = F.one_hot(label, probs.shape[1]).to(probs.dtype).mean(dim=0)
        for mean, value in (
            (self.level, confidence.mean()),
            (self.marginal, probs.mean(dim=0)),
            (self.histogram, shares),
        ):
            mean.lerp_(value, 1.0 - self.momentum)
