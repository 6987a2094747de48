"""Prototypes on top of a network's projections, in place of classes."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from protocon.base.draws import normal
from protocon.types import Outputs


class PrototypeHead(nn.Module):
    """Scores of K prototypes: inner products of unit-norm projections and prototypes.

    Args:
        backbone: gives the projections.
        prototypes: first vectors, (K, d).
        weight_norm: divide by their lengths in each pass, as DINO's last layer does; else they are used as they are.
    """

    def __init__(self, backbone: nn.Module, prototypes: Tensor, *, weight_norm: bool) -> None:
        super().__init__()
        self.backbone = backbone
        self.prototypes = nn.Parameter(prototypes)
        self.weight_norm = weight_norm

    def forward(self, x: Tensor) -> Outputs:
        """Scores as logits, and the projections."""
        embeddings = self.backbone(x).embeddings
        return Outputs(self.scores(embeddings), embeddings)

    def scores(self, embeddings: Tensor) -> Tensor:
        """Of projections (n, d), (n, K)."""
        vectors = F.normalize(self.prototypes, dim=-1) if self.weight_norm else self.prototypes
        return embeddings @ vectors.to(embeddings.dtype).T

    @torch.no_grad()
    def to_unit_length(self) -> None:
        """Put the prototypes back on the sphere."""
        self.prototypes.copy_(F.normalize(self.prototypes, dim=-1))


def drawn_prototypes(count: int, dim: int, *, seed: int) -> Tensor:
    """Unit-norm vectors (count, dim).

    Args:
        count: K.
        dim: d.
        seed: decides all of them.
    """
    keys = torch.arange(count) + 1_000_003 * (seed + 1)
    return F.normalize(normal(keys, 0, dim), dim=-1).to(torch.get_default_dtype())
