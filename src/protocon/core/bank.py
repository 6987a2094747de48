"""The O(4N) memory: hard label, reliability, assignment and similarity of every unlabelled sample."""

import torch
from torch import Tensor, nn

NOT_SEEN = -1
"""Label and assignment of a sample that no step has written yet."""


def smallest_integer(largest: int) -> torch.dtype:
    """The narrowest signed integer that holds 0 … largest and −1."""
    return torch.int16 if largest <= torch.iinfo(torch.int16).max else torch.int32


class SampleBank(nn.Module):
    """Four numbers per sample (two more for each further clustering head); no embeddings.

    At ImageNet size (C = 1,000, K = 4,800) a sample takes 7 bytes. The similarity is a weight in a mean
    over a cluster, so half precision (error below 0.0005) is plenty.

    Args:
        size: N, samples in the unlabelled set.
        classes: C.
        clusters: K.
        heads: H, independent clusterings.
    """

    label: Tensor
    reliable: Tensor
    assignment: Tensor
    similarity: Tensor

    def __init__(self, size: int, *, classes: int, clusters: int, heads: int = 1) -> None:
        super().__init__()
        self.register_buffer("label", torch.full((size,), NOT_SEEN, dtype=smallest_integer(classes - 1)))
        self.register_buffer("reliable", torch.zeros(size, dtype=torch.bool))
        self.register_buffer("assignment", torch.full((size, heads), NOT_SEEN, dtype=smallest_integer(clusters - 1)))
        self.register_buffer("similarity", torch.zeros(size, heads, dtype=torch.float16))

    @torch.no_grad()
    def write(self, index: Tensor, *, label: Tensor, reliable: Tensor, assignment: Tensor, similarity: Tensor) -> None:
        """Store one global batch at positions `index` (n,), which must not repeat.

        Args:
            index: positions in the unlabelled set.
            label: hard refined pseudo-label ŷ, (n,).
            reliable: η, (n,) bool.
            assignment: cluster under each head, (n, H).
            similarity: cosine to its centroid, (n, H).
        """
        self.label[index] = label.to(self.label.dtype)
        self.reliable[index] = reliable
        self.assignment[index] = assignment.to(self.assignment.dtype)
        self.similarity[index] = similarity.to(self.similarity.dtype)

    def bytes(self) -> int:
        """Memory that the bank takes."""
        return sum(buffer.numel() * buffer.element_size() for buffer in self.buffers())
