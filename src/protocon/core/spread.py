"""How widely embeddings spread and how evenly prototypes are used, over an epoch: the first signs of collapse."""

import math

import torch
from torch import Tensor, nn


class Spread(nn.Module):
    """1 − ‖mean‖² of the unit-norm embeddings of an epoch: their total variance.

    1 where they point everywhere, 0 where all images look the same.

    Args:
        dim: d.
    """

    total: Tensor
    steps: Tensor

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.register_buffer("total", torch.zeros(dim))
        self.register_buffer("steps", torch.zeros(()))

    @torch.no_grad()
    def add(self, means: Tensor) -> None:
        """Take in the mean embedding of a batch, in parts whose mean is that of the batch (m, d)."""
        self.total += means.mean(0).to(self.total.dtype)
        self.steps += 1

    @torch.no_grad()
    def close(self) -> float:
        """The epoch's spread; begins anew."""
        mean = self.total / self.steps.clamp(min=1)
        self.total.zero_()
        self.steps.zero_()
        return float(1.0 - mean.double().square().sum())


class Usage(nn.Module):
    """Entropy of an epoch's mean target ÷ ln K: 1 where all prototypes are used alike, 0 where one takes all images.

    Args:
        prototypes: K.
    """

    total: Tensor

    def __init__(self, prototypes: int) -> None:
        super().__init__()
        self.register_buffer("total", torch.zeros(prototypes))

    @torch.no_grad()
    def add(self, means: Tensor) -> None:
        """Take in the mean target of a batch, in parts whose mean is that of the batch (m, K)."""
        self.total += means.mean(0).to(self.total.dtype)

    @torch.no_grad()
    def close(self) -> float:
        """The epoch's entropy; begins anew."""
        share = self.total.double() / self.total.double().sum().clamp(min=1e-12)
        self.total.zero_()
        return float(torch.special.entr(share).sum() / math.log(len(share)))
