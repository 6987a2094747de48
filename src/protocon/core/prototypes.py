"""Class prototypes (Eq. 1): the mean direction of each class's labelled and reliable projections."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class ClassPrototypes(nn.Module):
    """C unit vectors, summed over an epoch and published at its end.

    `prototypes` holds what the last epoch published (zeros before the first publication); `sums` and
    `counts` gather the current epoch.
    """

    sums: Tensor
    counts: Tensor
    prototypes: Tensor

    def __init__(self, classes: int, dim: int) -> None:
        super().__init__()
        self.register_buffer("sums", torch.zeros(classes, dim))
        self.register_buffer("counts", torch.zeros(classes))
        self.register_buffer("prototypes", torch.zeros(classes, dim))

    @torch.no_grad()
    def add(self, embeddings: Tensor, labels: Tensor, mask: Tensor | None = None) -> None:
        """Add projections (n, d) to the sums of their classes (n,), where `mask` (n,) is true.

        Args:
            embeddings: unit-norm projections.
            labels: their classes, int64.
            mask: bool; None adds all.
        """
        weights = F.one_hot(labels, len(self.counts)).to(self.sums.dtype)
        if mask is not None:
            weights = weights * mask[:, None]
        # A matrix product rather than a scatter: its order of summation is fixed on every device.
        with torch.autocast(embeddings.device.type, enabled=False):
            self.sums += weights.T @ embeddings.to(self.sums.dtype)
        self.counts += weights.sum(0)

    def similarity(self) -> float:
        """Mean cosine between the prototypes of two different classes: near 1 where the space has collapsed."""
        classes = len(self.prototypes)
        # The sum over all pairs is the squared length of the sum; each vector's cosine with itself is taken off.
        pairs = self.prototypes.double().sum(0).square().sum() - self.prototypes.double().square().sum()
        return float(pairs) / max(1, classes * (classes - 1))

    def publish(self) -> None:
        """End the epoch: a class that received members gets a new prototype, any other keeps its own."""
        length = self.sums.norm(dim=-1, keepdim=True)
        received = (self.counts[:, None] > 0) & (length > 1e-12)
        self.prototypes.copy_(torch.where(received, self.sums / length.clamp(min=1e-12), self.prototypes))
        self.sums.zero_()
        self.counts.zero_()
