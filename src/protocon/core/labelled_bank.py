"""SimMatch's memory of the labelled images, and the two ways between instances and classes."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def calibrate(similarity: Tensor, probs: Tensor, labels: Tensor) -> Tensor:
    """Unfold class probabilities over instances and weigh the similarities by them (SimMatch's Eq. 7-8).

    Args:
        similarity: q^w over the labelled instances, (n, M), rows sum to 1.
        probs: p^w, (n, C).
        labels: class of each instance, (M,).

    Returns:
        q̂, (n, M). A row whose class has no labelled instance may sum to less than 1.
    """
    unfolded = similarity * probs[:, labels]
    return unfolded / unfolded.sum(dim=-1, keepdim=True).clamp(min=1e-12)


def aggregate(similarity: Tensor, labels: Tensor, *, classes: int) -> Tensor:
    """Sum the similarities of each class's instances (SimMatch's Eq. 9): (n, M) to (n, C).

    Args:
        similarity: of each sample to each labelled instance, (n, M).
        labels: classes of the labelled instances, (M,).
        classes: C.
    """
    return similarity.new_zeros(len(similarity), classes).index_add(1, labels, similarity)


def last_occurrence(index: Tensor) -> Tensor:
    """For each entry of (n,), the position of the last entry equal to it."""
    position = torch.arange(len(index), device=index.device)
    return torch.where(index[:, None] == index, position, -1).max(dim=1).values


class LabelledBank(nn.Module):
    """One unit-norm embedding for each labelled image, with its class.

    Args:
        labels: classes of the labelled set, (M,).
        dim: d.
        momentum: m of SimMatch's Eq. 12, the share of an embedding that an update keeps; 0 replaces it.
    """

    embeddings: Tensor
    labels: Tensor
    seen: Tensor

    def __init__(self, labels: Tensor, *, dim: int, momentum: float) -> None:
        super().__init__()
        self.momentum = momentum
        self.register_buffer("embeddings", torch.zeros(len(labels), dim))
        self.register_buffer("labels", labels.clone())
        self.register_buffer("seen", torch.zeros(len(labels), dtype=torch.bool))

    def ready(self) -> Tensor:
        """Whether every labelled image has been seen: a scalar bool that stays on the device."""
        return self.seen.all()

    def logits(self, embeddings: Tensor, *, temperature: float) -> Tensor:
        """Similarities of (n, d) to every labelled image, over t, (n, M): before Eq. 3-4's softmax."""
        return embeddings @ self.embeddings.to(embeddings.dtype).T / temperature

    def moved(self, index: Tensor, embeddings: Tensor) -> Tensor:
        """Where new embeddings (n, d) move the labelled images `index` (n,), which may repeat: (n, d).

        An image's first embedding is taken as it is. Of several in one batch the last counts, in every
        row of that image.
        """
        newest = embeddings[last_occurrence(index)].to(self.embeddings.dtype)
        kept = torch.where(self.seen[index], self.momentum, 0.0)[:, None].to(newest.dtype)
        return F.normalize(kept * self.embeddings[index] + (1.0 - kept) * newest, dim=-1)

    @torch.no_grad()
    def update(self, index: Tensor, embeddings: Tensor) -> None:
        """Take in new embeddings (n, d) of labelled images `index` (n,); see `moved`."""
        # Every repeat of an image carries the same row, so it does not matter which write comes last.
        self.embeddings[index] = self.moved(index, embeddings)
        self.seen[index] = True

    def bytes(self) -> int:
        """Memory that the bank takes."""
        return sum(buffer.numel() * buffer.element_size() for buffer in self.buffers())
