"""DebiasPL's correction in logit space: classes that are predicted too often are held back."""

import torch
from torch import Tensor, nn


class LogitDebias(nn.Module):
    """Keeps p̂, the running mean prediction of each class, and shifts logits by λ·log p̂.

    Args:
        classes: C.
        strength: λ; 0 switches the correction off.
        momentum: m of the running mean.
    """

    mean: Tensor

    def __init__(self, classes: int, *, strength: float, momentum: float) -> None:
        super().__init__()
        self.strength = strength
        self.momentum = momentum
        self.register_buffer("mean", torch.full((classes,), 1.0 / classes))

    def shift(self) -> Tensor:
        """λ·log p̂, (C,)."""
        return self.strength * self.mean.clamp(min=1e-6).log()

    def forward(self, logits: Tensor) -> Tensor:
        """Debiased logits f̃ = f − λ·log p̂ (DebiasPL's Eq. 3), for the pseudo-label; changes nothing."""
        return logits - self.shift()

    def margin(self, logits: Tensor) -> Tensor:
        """Logits + λ·log p̂, for the loss: a class has to win by more, the rarer it is predicted."""
        return logits + self.shift()

    @torch.no_grad()
    def update(self, probs: Tensor) -> None:
        """Take in the *uncorrected* predictions (n, C) of one global batch (DebiasPL's Eq. 4)."""
        # The mean is over images alone: over classes too it would be 1/C for ever, and correct nothing.
        self.mean.lerp_(probs.to(self.mean.dtype).mean(dim=0), 1.0 - self.momentum)
