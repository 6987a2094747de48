"""Class frequencies that are estimated while a model learns, from its own predictions."""

import torch
from torch import Tensor, nn

from protocon.core.alignment import DistributionAlignment, DualAlignment


class RunningPrior(nn.Module):
    """Class frequencies of the unlabelled images, one step of EM per batch (Saerens et al., 2002), and shrunk.

    A classifier that learns from labels with frequencies s, and sees images whose classes have frequencies π, should
    multiply its probabilities by π / s. The mean of what it says then is a better π, and so on. Where it errs this
    feeds on itself, so that only a share w of the estimate is used, and 1 − w of uniform frequencies.

    Args:
        source: s, class frequencies of the labels that a step learns from, (C,).
        momentum: share of the estimate that a batch keeps.
        weight: w.
    """

    source: Tensor
    estimate: Tensor

    def __init__(self, source: Tensor, *, momentum: float, weight: float) -> None:
        super().__init__()
        self.momentum = momentum
        self.weight = weight
        self.register_buffer("source", source.clone())
        self.register_buffer("estimate", torch.full_like(source, 1.0 / len(source)))

    def forward(self) -> Tensor:
        """The frequencies to align to, (C,)."""
        return self.weight * self.estimate + (1.0 - self.weight) / len(self.estimate)

    @torch.no_grad()
    def update(self, probs: Tensor) -> None:
        """Take in the predictions (B, C) of one global batch."""
        shifted = probs.to(self.estimate.dtype) * (self.estimate / self.source.clamp(min=1e-6))
        shifted = shifted / shifted.sum(dim=-1, keepdim=True).clamp(min=1e-12)
        self.estimate.lerp_(shifted.mean(0), 1.0 - self.momentum)


class FollowingAlignment(nn.Module):
    """Alignment to frequencies that a running estimate keeps changing.

    Args:
        alignment: with a prior of its own, which is overwritten.
        running: the estimate.
    """

    def __init__(self, alignment: DistributionAlignment | DualAlignment, running: RunningPrior) -> None:
        super().__init__()
        self.alignment = alignment
        self.running = running

    @property
    def prior(self) -> Tensor | None:
        """The frequencies that predictions are aligned to now, (C,)."""
        return self.alignment.prior

    def forward(self, probs: Tensor) -> Tensor:
        """Align probabilities (B, C); changes nothing."""
        aligned: Tensor = self.alignment(probs)
        return aligned

    @torch.no_grad()
    def update(self, probs: Tensor) -> None:
        """Take in the predictions (B, C) of one global batch."""
        self.running.update(probs)
        assert self.alignment.prior is not None
        self.alignment.prior.copy_(self.running())
        self.alignment.update(probs)
