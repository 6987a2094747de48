"""DINO's centre: the running mean of the teacher's outputs, which keeps one dimension from winning."""

import torch
from torch import Tensor, nn


class Centre(nn.Module):
    """c ← m·c + (1 − m)·mean of the batch (DINO, Eq. 4).

    Args:
        dim: K.
        momentum: m; 1 leaves the centre at 0, which is no centring.
    """

    mean: Tensor

    def __init__(self, dim: int, *, momentum: float) -> None:
        super().__init__()
        self.momentum = momentum
        self.register_buffer("mean", torch.zeros(dim))

    @torch.no_grad()
    def update(self, means: Tensor) -> None:
        """Move towards a batch's mean, in parts whose mean it is (m, K)."""
        self.mean.lerp_(means.mean(0).to(self.mean.dtype), 1.0 - self.momentum)
