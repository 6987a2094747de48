"""SoftMatch's soft threshold: confidence becomes a weight by a Gaussian, cut off at its mean."""

import torch
from torch import Tensor, nn


class ConfidenceGaussian(nn.Module):
    """Weight 1 from the running mean confidence on, falling with the distance below it.

    Args:
        classes: C; the mean starts at 1/C, which no confidence is below, so that all weights start at 1.
        momentum: m of the running mean and variance.
        width: n_σ. The variance is divided by its square: with 2, a confidence one standard deviation
            below the mean is two standard deviations out.
    """

    mean: Tensor
    variance: Tensor

    def __init__(self, classes: int, *, momentum: float, width: float) -> None:
        super().__init__()
        self.momentum = momentum
        self.width = width
        self.register_buffer("mean", torch.full((), 1.0 / classes))
        self.register_buffer("variance", torch.ones(()))

    def forward(self, confidence: Tensor) -> Tensor:
        """Weights (n,) from 0 to 1 of confidences (n,) (SoftMatch's Eq. 5 and 9); changes nothing."""
        below = (self.mean - confidence).clamp(min=0.0)
        return torch.exp(-(below**2) * self.width**2 / (2.0 * self.variance.clamp(min=1e-12)))

    @torch.no_grad()
    def update(self, confidence: Tensor) -> None:
        """Take in the confidences (n,) of one global batch (SoftMatch's Eq. 6-7)."""
        confidence = confidence.to(self.mean.dtype)
        rows = len(confidence)
        unbiased = confidence.var(correction=0) * (rows / max(1, rows - 1))
        self.mean.lerp_(confidence.mean(), 1.0 - self.momentum)
        self.variance.lerp_(unbiased, 1.0 - self.momentum)
