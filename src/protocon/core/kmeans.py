"""Online constrained K-means on the unit sphere (Eq. 3-7): every cluster keeps at least γ members.

A dual variable ρ_k per cluster is a bonus that grows while the cluster starves. Assignments and duals
move with every mini-batch, so no embedding is ever stored.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from protocon.base.draws import fold, normal

_START = 201  # what the random start's draws are for
# Clusters compared at once: similarities to hundreds of thousands would fill the memory, these fit the cache.
_BLOCK = 1 << 11


def assign(similarity: Tensor, duals: Tensor) -> Tensor:
    """Assign each row to the cluster with the largest s + ρ (Eq. 4-5).

    Args:
        similarity: cosine of every sample to every centroid, (B, K).
        duals: (K,).

    Returns:
        Cluster numbers, (B,) int64.
    """
    return (similarity + duals).argmax(dim=-1)


def project_duals(duals: Tensor, bound: float) -> Tensor:
    """The nearest point of {ρ ≥ 0, ‖ρ‖₁ ≤ bound} (appendix A).

    Outside the simplex this is ρ ↦ max(0, ρ − t), with t from the sorted cumulative sums.
    """
    positive = duals.clamp(min=0)
    ordered = positive.sort(descending=True).values
    excess = (ordered.cumsum(0) - bound) / torch.arange(1, len(ordered) + 1, device=duals.device)
    # The support is a prefix of the sorted values, so the largest excess is the shift that fits.
    shift = excess.max().clamp(min=0)
    return (positive - shift).clamp(min=0)


def update_duals(
    duals: Tensor,
    counts: Tensor,
    *,
    batch_size: int,
    gamma: float,
    population: int,
    rate: float,
    bound: float | None = None,
) -> Tensor:
    """One dual step (Eq. 6): ρ ← max(0, ρ − λ·(share of the batch − γ/N)).

    Args:
        duals: (K,).
        counts: members that each cluster received in this batch, (K,).
        batch_size: rows in the batch.
        gamma: smallest size γ that a cluster should have.
        population: number N of samples in an epoch.
        rate: dual learning rate λ.
        bound: δ of the appendix's projection; None leaves it out, as the paper's Eq. 6 does.
    """
    moved = (duals - rate * (counts / batch_size - gamma / population)).clamp(min=0)
    return moved if bound is None else project_duals(moved, bound)


@dataclass(frozen=True)
class Assignment:
    """Where H heads put B samples."""

    index: Tensor
    """Cluster of each sample under each head, (B, H) int64."""
    similarity: Tensor
    """Cosine to that cluster's centroid, without the dual, (B, H)."""


class ConstrainedKMeans(nn.Module):
    """H independent clusterings of the same projections, each with K centroids and duals.

    Args:
        clusters: K.
        dim: d of the projections.
        gamma: smallest size γ of a cluster; 0 is plain online K-means.
        population: N samples per epoch.
        dual_rate: λ.
        dual_bound: δ, see `project_duals`.
        heads: H; heads differ by their random start alone.
        seed: of the random start.
    """

    centroids: Tensor
    duals: Tensor
    sums: Tensor
    counts: Tensor

    def __init__(
        self,
        *,
        clusters: int,
        dim: int,
        gamma: float,
        population: int,
        dual_rate: float,
        dual_bound: float | None = None,
        heads: int = 1,
        seed: int = 0,
    ) -> None:
        super().__init__()
        self.clusters = clusters
        self.gamma = gamma
        self.population = population
        self.dual_rate = dual_rate
        self.dual_bound = dual_bound
        start = normal(fold(fold(seed, _START), torch.arange(heads * clusters)), 0, dim)
        start = start.to(torch.get_default_dtype())  # that of the sums
        self.register_buffer("centroids", F.normalize(start, dim=-1).view(heads, clusters, dim))
        self.register_buffer("duals", torch.zeros(heads, clusters))
        # Sum and number of the members received this epoch: the running mean of Eq. 7.
        self.register_buffer("sums", torch.zeros(heads, clusters, dim))
        self.register_buffer("counts", torch.zeros(heads, clusters))

    @property
    def heads(self) -> int:
        """H."""
        return self.centroids.shape[0]

    def assign(self, embeddings: Tensor) -> Assignment:
        """Assign unit-norm projections (B, d) to clusters; changes nothing."""
        index, nearest = [], []
        # Not in half precision: one assignment in a hundred would change.
        with torch.autocast(embeddings.device.type, enabled=False):
            for centroids, duals in zip(self.centroids, self.duals, strict=True):
                chosen, similarity = _assign_in_blocks(embeddings.to(centroids.dtype), centroids, duals)
                index.append(chosen)
                nearest.append(similarity)
        return Assignment(torch.stack(index, dim=1), torch.stack(nearest, dim=1))

    @torch.no_grad()
    def update(self, embeddings: Tensor, index: Tensor, *, move_centroids: bool) -> None:
        """Take in a global batch: duals by Eq. 6, running sums, and centroids by Eq. 7 if asked.

        Args:
            embeddings: (B, d), the rows that `assign` saw.
            index: (B, H), what it returned.
            move_centroids: True during the warm-up, when centroids move with every mini-batch.
        """
        embeddings = embeddings.to(self.sums.dtype)
        for head in range(self.heads):
            members = index[:, head]
            counts = torch.bincount(members, minlength=self.clusters).to(self.counts.dtype)
            self.duals[head] = update_duals(
                self.duals[head],
                counts,
                batch_size=len(members),
                gamma=self.gamma,
                population=self.population,
                rate=self.dual_rate,
                bound=self.dual_bound,
            )
            self.sums[head].index_add_(0, members, embeddings)
            self.counts[head] += counts
            if move_centroids:
                # Only the batch's clusters have new sums. Named twice, a cluster is written the same twice.
                self.centroids[head, members] = _centres(
                    self.sums[head, members], self.counts[head, members], self.centroids[head, members]
                )

    @torch.no_grad()
    def end_epoch(self, *, move_centroids: bool) -> None:
        """Close the epoch: move centroids once if asked, then reset the running means."""
        if move_centroids:
            self.centroids.copy_(_centres(self.sums, self.counts, self.centroids))
        self.sums.zero_()
        self.counts.zero_()


def _assign_in_blocks(embeddings: Tensor, centroids: Tensor, duals: Tensor) -> tuple[Tensor, Tensor]:
    """`assign` and the similarity without the dual, (B,) both, never holding more than B × 2,048 similarities."""
    index = embeddings.new_zeros(len(embeddings), dtype=torch.int64)
    cosine = embeddings.new_zeros(len(embeddings))
    best = embeddings.new_full((len(embeddings),), -torch.inf)
    for start in range(0, len(centroids), _BLOCK):
        block = slice(start, start + _BLOCK)
        similarity = embeddings @ centroids[block].T
        chosen = assign(similarity, duals[block])
        nearest = similarity.gather(1, chosen[:, None])[:, 0]
        score = nearest + duals[block][chosen]
        # Strictly better: of equal clusters the first is taken, as argmax does.
        better = score > best
        index = torch.where(better, chosen + start, index)
        cosine = torch.where(better, nearest, cosine)
        best = torch.where(better, score, best)
    return index, cosine


def _centres(sums: Tensor, counts: Tensor, before: Tensor) -> Tensor:
    """Centroids of Eq. 7, (…, d). The mean's length is normalised away, so the sum serves; an empty cluster stays."""
    length = sums.norm(dim=-1, keepdim=True)
    occupied = (counts[..., None] > 0) & (length > 1e-12)
    return torch.where(occupied, sums / length.clamp(min=1e-12), before)
