"""The weighted nearest-neighbour classifier that watches features while no labels train them."""

import torch
import torch.nn.functional as F
from torch import Tensor

_ROWS = 1024
"""Queries at a time."""


def knn_scores(
    queries: Tensor,
    bank: Tensor,
    labels: Tensor,
    *,
    classes: int,
    neighbours: int = 20,
    temperature: float = 0.07,
    own: bool = False,
) -> Tensor:
    """Votes (n, C) of the nearest neighbours, each weighted by exp(cosine / τ) (Wu et al., CVPR 2018).

    Args:
        queries: features (n, d).
        bank: features of known class (m, d).
        labels: their classes, (m,) int64.
        classes: C.
        neighbours: k, or all where the bank has fewer.
        temperature: τ.
        own: the queries are the bank, and none votes for itself.
    """
    unit = F.normalize(bank, dim=-1)
    scores: list[Tensor] = []
    for start, part in enumerate(torch.split(F.normalize(queries, dim=-1), _ROWS)):
        similarity = part @ unit.T
        if own:
            rows = torch.arange(len(part))
            similarity[rows, rows + _ROWS * start] = -torch.inf
        nearest, index = similarity.topk(min(neighbours, len(bank) - own), dim=1)
        votes = torch.zeros(len(part), classes, dtype=similarity.dtype)
        scores.append(votes.scatter_add_(1, labels[index], (nearest / temperature).exp()))
    return torch.cat(scores)
