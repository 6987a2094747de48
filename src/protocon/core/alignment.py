"""Distribution alignment: pseudo-labels shall be as frequent, on average, as the classes are."""

import torch
from torch import Tensor, nn


def align(probs: Tensor, marginal: Tensor, prior: Tensor | None = None) -> Tensor:
    """Divide by what is predicted on average, multiply by what should be, renormalise.

    Args:
        probs: (B, C).
        marginal: running mean of predictions, (C,).
        prior: true class frequencies (C,); None stands for uniform.
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
