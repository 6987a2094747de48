"""Cluster labels (Eq. 8) and the refined pseudo-label (Eq. 9)."""

import torch
from torch import Tensor

from protocon.base.draws import uniform
from protocon.core.bank import NOT_SEEN

_BLOCK = 1 << 24  # samples that are counted at once: each takes 16 bytes of working memory


def cluster_labels(
    labels: Tensor,
    assignment: Tensor,
    similarity: Tensor,
    *,
    clusters: int,
    classes: int,
    fraction: float = 1.0,
    key: int = 0,
) -> Tensor:
    """Each cluster's class distribution: its members' hard labels, weighted by similarity (Eq. 8).

    Early cosines can be negative and count as 0. A cluster without mass is uniform.

    Args:
        labels: hard pseudo-label of every sample, (N,); −1 leaves the sample out.
        assignment: its cluster, (N,).
        similarity: cosine to the centroid, (N,).
        clusters: K.
        classes: C.
        fraction: share of each cluster's members to use, drawn at random (the paper's history ablation).
        key: of that draw.

    Returns:
        (K, C) float32, rows sum to 1.
    """
    seen = labels > NOT_SEEN
    if fraction < 1.0:
        seen &= _subset_of_clusters(torch.where(seen, assignment.long(), clusters), fraction, key)
    if not bool(seen.all()):
        labels, assignment, similarity = labels[seen], assignment[seen], similarity[seen]
    # float64: a cluster at ImageNet size sums hundreds of weights, and order must not matter visibly.
    mass = torch.zeros(clusters * classes, dtype=torch.float64, device=labels.device)
    for start in range(0, len(labels), _BLOCK):
        part = slice(start, start + _BLOCK)
        cells = assignment[part].long() * classes + labels[part]
        weights = similarity[part].double().clamp_(min=0)
        mass += torch.bincount(cells, weights=weights, minlength=clusters * classes)
    table = mass.view(clusters, classes).float()
    total = table.sum(dim=1, keepdim=True)
    # In place: at ImageNet size the table is most of the work.
    return table.div_(total.clamp(min=1e-30)).masked_fill_(total <= 0, 1.0 / classes)


def _subset_of_clusters(assignment: Tensor, fraction: float, key: int) -> Tensor:
    """A mask (N,) that keeps ⌈fraction · size⌉ members of each cluster, chosen uniformly at random."""
    n = len(assignment)
    draw = uniform(torch.tensor([key], device=assignment.device), 0, n)[0]
    shuffled = draw.argsort(stable=True)
    order = shuffled[assignment[shuffled].argsort(stable=True)]  # by cluster, random within it
    sizes = torch.bincount(assignment)
    starts = sizes.cumsum(0) - sizes
    rank = torch.arange(n, device=assignment.device) - starts[assignment[order]]
    keep = torch.zeros(n, dtype=torch.bool, device=assignment.device)
    keep[order] = rank < torch.ceil(fraction * sizes.double())[assignment[order]]
    return keep


def refine(aligned: Tensor, cluster: Tensor, alpha: float) -> Tensor:
    """Mix the classifier's aligned opinion with the neighbourhood's (Eq. 9).

    Args:
        aligned: DA(p^w), (B, C).
        cluster: z of each sample's cluster, (B, C).
        alpha: weight of the classifier.
    """
    return alpha * aligned + (1.0 - alpha) * cluster


def ceiling(cluster: Tensor, alpha: float) -> Tensor:
    """The largest confidence that a refined label can have in its cluster, (B,): α + (1 − α) · max z.

    Even a classifier that is certain cannot make the mixture of Eq. 9 surer than this. With α = 0.8 and τ = 0.95 no
    member of a cluster whose label is less than 75 % pure ever counts as reliable.

    Args:
        cluster: z of each sample's cluster, (B, C).
        alpha: weight of the classifier.
    """
    return alpha + (1.0 - alpha) * cluster.max(dim=-1).values
