"""Distribution alignment: pseudo-labels become as frequent, on average, as the classes are.

Two ways to get there: the paper's, which divides by a running mean, and a dual one, which keeps pushing until the
frequencies match.
"""

import torch
from torch import Tensor, nn


def align(probs: Tensor, marginal: Tensor, prior: Tensor | None = None) -> Tensor:
    """Divide by what is predicted on average, multiply by what should be, renormalise.

    Args:
        probs: (B, C).
        marginal: running mean of predictions, (C,).
        prior: true class frequencies (C,); None means uniform.
    """
    ratio = probs / marginal.clamp(min=1e-6)
    if prior is not None:
        ratio = ratio * prior
    # A prior of zero may leave a row with no mass at all; it stays zero rather than become NaN.
    return ratio / ratio.sum(dim=-1, keepdim=True).clamp(min=1e-12)


class DistributionAlignment(nn.Module):
    """Keeps the running mean of predictions and aligns to a class prior.

    Args:
        classes: C.
        window: how many of the last batches the mean is over.
        momentum: if given, an exponential mean instead of a window.
        prior: class frequencies (C,) to align to; None for uniform.
    """

    history: Tensor
    received: Tensor
    prior: Tensor | None

    def __init__(
        self, classes: int, *, window: int = 32, momentum: float | None = None, prior: Tensor | None = None
    ) -> None:
        super().__init__()
        self.momentum = momentum
        rows = 1 if momentum is not None else window
        self.register_buffer("history", torch.full((rows, classes), 1.0 / classes))
        self.register_buffer("received", torch.zeros((), dtype=torch.int64))
        self.register_buffer("prior", prior)

    def marginal(self) -> Tensor:
        """Mean prediction so far, (C,); uniform before the first batch."""
        rows = len(self.history)
        # Rows not yet written are masked out rather than sliced off: no host synchronisation.
        filled = (torch.arange(rows, device=self.history.device) < self.received.clamp(1, rows)).to(self.history.dtype)
        return filled @ self.history / filled.sum()

    def forward(self, probs: Tensor) -> Tensor:
        """Align probabilities (B, C); changes nothing."""
        return align(probs, self.marginal(), self.prior)

    @torch.no_grad()
    def update(self, probs: Tensor) -> None:
        """Take in the predictions (B, C) of one global batch."""
        mean = probs.to(self.history.dtype).mean(0)
        if self.momentum is None:
            self.history[self.received % len(self.history)] = mean
        else:
            self.history.mul_(self.momentum).add_(mean, alpha=1.0 - self.momentum)
        self.received += 1


class DualAlignment(nn.Module):
    """Adds a bias per class to the log-probabilities, and moves it until aligned predictions match the prior.

    This is Eq. 6's idea for classes instead of clusters: the bias is the dual variable of the constraint that class c
    receives its share. Dividing by a running mean shifts every prediction once; a confident group of images on the
    wrong side, such as a rare way to write a 9 that looks like a 4, stays there. A dual grows for as long as the 9s are
    too few, so the least certain 4s change sides while predictions are still soft. It trusts the prior: where the
    classes' frequencies are not known, `DistributionAlignment` is the safer one.

    Args:
        classes: C.
        rate: step size of the dual.
        prior: class frequencies (C,) to match; None for uniform.
    """

    bias: Tensor
    prior: Tensor

    def __init__(self, classes: int, *, rate: float, prior: Tensor | None = None) -> None:
        super().__init__()
        self.rate = rate
        self.register_buffer("bias", torch.zeros(classes))
        self.register_buffer("prior", torch.full((classes,), 1.0 / classes) if prior is None else prior)

    def forward(self, probs: Tensor) -> Tensor:
        """Align probabilities (B, C); changes nothing."""
        return (probs.clamp(min=1e-12).log() + self.bias).softmax(-1)

    @torch.no_grad()
    def update(self, probs: Tensor) -> None:
        """Take in the predictions (B, C) of one global batch: one dual step."""
        self.bias += self.rate * (self.prior - self(probs.to(self.bias.dtype)).mean(0))
