"""A first-in-first-out memory of weak views: embeddings with the class probabilities believed of them."""

import torch
from torch import Tensor, nn


class FeatureQueue(nn.Module):
    """The last K weak views, labelled and unlabelled alike (CoMatch's memory bank).

    Args:
        size: K, rows kept.
        dim: d of the unit-norm embeddings.
        classes: C.
    """

    embeddings: Tensor
    probs: Tensor
    received: Tensor

    def __init__(self, size: int, *, dim: int, classes: int) -> None:
        super().__init__()
        self.register_buffer("embeddings", torch.zeros(size, dim))
        self.register_buffer("probs", torch.zeros(size, classes))
        # All rows ever received: the next one goes to this number modulo K.
        self.register_buffer("received", torch.zeros((), dtype=torch.int64))

    def smooth(self, probs: Tensor, embeddings: Tensor, *, alpha: float, temperature: float) -> Tensor:
        """Mix predictions with those of similar rows of the memory (CoMatch's Eq. 7-8).

        Changes nothing. Predictions stay as they are while the memory is empty.

        Args:
            probs: p^w, (n, C).
            embeddings: z^w, (n, d).
            alpha: weight of the row's own prediction.
            temperature: t of the similarities.
        """
        similarity = embeddings @ self.embeddings.to(embeddings.dtype).T / temperature
        empty = torch.arange(len(self.probs), device=self.probs.device) >= self.received
        # The smallest finite number rather than −∞, which would make an empty memory's weights undefined.
        weights = similarity.masked_fill(empty, torch.finfo(similarity.dtype).min).softmax(-1)
        mixed = alpha * probs + (1.0 - alpha) * (weights @ self.probs.to(weights.dtype))
        return torch.where(self.received > 0, mixed, probs)

    @torch.no_grad()
    def add(self, embeddings: Tensor, probs: Tensor) -> None:
        """Take in rows (n, d) and (n, C); the oldest make room. Of more than K rows the last K stay."""
        size, new = len(self.probs), len(probs)
        kept = min(size, new)
        order = torch.arange(new - kept, new, device=self.probs.device)
        place = (self.received + order) % size  # kept ≤ K, so no place repeats
        self.embeddings[place] = embeddings[new - kept :].to(self.embeddings.dtype)
        self.probs[place] = probs[new - kept :].to(self.probs.dtype)
        self.received += new

    def bytes(self) -> int:
        """Memory that the queue takes."""
        return sum(buffer.numel() * buffer.element_size() for buffer in self.buffers())


class EmbeddingQueue(nn.Module):
    """The last K embeddings, first in, first out (MoCo's keys, SwAV's projections).

    Args:
        size: K, rows kept.
        dim: d.
    """

    embeddings: Tensor
    received: Tensor

    def __init__(self, size: int, *, dim: int) -> None:
        super().__init__()
        self.register_buffer("embeddings", torch.zeros(size, dim))
        # All rows ever received: the next one goes to this number modulo K.
        self.register_buffer("received", torch.zeros((), dtype=torch.int64))

    def similarities(self, rows: Tensor) -> Tensor:
        """Inner products of rows (n, d) with the queue, (n, K); the lowest finite number where a place is empty."""
        found = rows @ self.embeddings.to(rows.dtype).T
        empty = torch.arange(len(self.embeddings), device=rows.device) >= self.received
        return found.masked_fill(empty, torch.finfo(found.dtype).min)

    @torch.no_grad()
    def add(self, embeddings: Tensor) -> None:
        """Take in rows (n, d); the oldest make room. Of more than K rows the last K stay."""
        size, new = len(self.embeddings), len(embeddings)
        kept = min(size, new)
        order = torch.arange(new - kept, new, device=self.embeddings.device)
        place = (self.received + order) % size
        self.embeddings[place] = embeddings[new - kept :].to(self.embeddings.dtype)
        self.received += new

    def bytes(self) -> int:
        """Memory that the queue takes."""
        return self.embeddings.numel() * self.embeddings.element_size()
