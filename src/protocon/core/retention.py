"""A threshold that gives way where too few samples would pass it."""

import torch
from torch import Tensor, nn

_BINS = 1000


def retaining_threshold(counts: Tensor, *, threshold: float, retention: float) -> float:
    """min(τ, the highest bin edge that at least a share r of the confidences reaches).

    Args:
        counts: confidences in bins of equal width over [0, 1], (bins,) int64.
        threshold: τ, which is never exceeded.
        retention: r.
    """
    total = int(counts.sum())
    if total == 0 or retention <= 0:
        return threshold
    reaching = counts.flip(0).cumsum(0).flip(0)  # how many lie in this bin or above
    enough = (reaching >= retention * total).nonzero().flatten()
    return min(threshold, int(enough[-1]) / len(counts))


class RetentionThreshold(nn.Module):
    """τ, lowered for an epoch if less than a share r of the last epoch's samples would have passed it.

    Softmaxes of heads on a pretrained encoder can stay flat, so that a fixed τ = 0.95 keeps nothing and the images
    teach nothing. In each epoch the threshold is τ_e = min(τ, Q), with Q the confidence that a share r reached in
    the epoch before: once confidences have grown, it is τ again.

    Args:
        threshold: τ.
        retention: r; 0 keeps τ fixed.
    """

    counts: Tensor
    level: Tensor
    before: Tensor

    def __init__(self, threshold: float, *, retention: float) -> None:
        super().__init__()
        self.threshold = threshold
        self.retention = retention
        # In double precision: a fixed τ must be the very number that was set.
        self.register_buffer("level", torch.tensor(threshold, dtype=torch.float64))
        self.register_buffer("before", torch.tensor(threshold, dtype=torch.float64))
        self.register_buffer("counts", torch.zeros(_BINS, dtype=torch.int64))

    def reliable(self, confidence: Tensor) -> Tensor:
        """Which samples pass, bool (n,)."""
        return confidence >= (float(self.level) if self.retention > 0 else self.threshold)

    @torch.no_grad()
    def update(self, confidence: Tensor) -> None:
        """Take in the confidences of a global batch, (n,)."""
        if self.retention > 0:
            bins = (confidence.double() * _BINS).long().clamp_(0, _BINS - 1)
            self.counts += torch.bincount(bins, minlength=_BINS)

    @torch.no_grad()
    def end_epoch(self) -> dict[str, float]:
        """Set the next epoch's threshold; returns it for the log, or nothing where τ is fixed."""
        if self.retention <= 0:
            return {}
        self.before.copy_(self.level)
        self.level.fill_(retaining_threshold(self.counts, threshold=self.threshold, retention=self.retention))
        self.counts.zero_()
        return {"threshold": float(self.level)}

    def remark(self) -> str | None:
        """A line for the user if the threshold left τ, or came back to it, at the end of the last epoch."""
        lowered, was_lowered = bool(self.level < self.threshold), bool(self.before < self.threshold)
        if lowered == was_lowered:
            return None
        if lowered:
            return (
                f"less than {100 * self.retention:g} % of the pseudo-labels reach the confidence {self.threshold:g}; "
                f"the threshold is lowered to {float(self.level):.3f}, and follows from now on"
            )
        return f"{100 * self.retention:g} % of the pseudo-labels reach the confidence {self.threshold:g} again"
