"""Principal components of a frozen encoder's features: the heads' input."""

from dataclasses import dataclass

import torch
from torch import Tensor

from protocon.features.cached_views import CachedViews

_BLOCK = 4096


@dataclass(frozen=True)
class Reduction:
    """features ↦ (features − mean) @ matrix."""

    mean: Tensor
    """(D,)."""
    matrix: Tensor
    """(D, k)."""

    def __call__(self, features: Tensor) -> Tensor:
        """Components (…, k) of features (…, D)."""
        return (features - self.mean) @ self.matrix


def principal_components(samples: CachedViews, count: int) -> Reduction:
    """The `count` directions in which standardised clean features vary most, all scaled alike.

    The scale makes the mean variance of a component 1, so that noise of a given strength means the same for every
    encoder. It is one for all components: their different spreads tell what matters, and whitening would hide it.

    In double precision, so that the last bits of an eigenvector are not a matter of how sums are ordered.
    """
    mean, std = samples.statistics()
    rows = ((samples.clean().double() - mean) / std.double()).nan_to_num_()
    values, vectors = torch.linalg.eigh(rows.T @ rows / len(rows))
    values, vectors = values[-count:].flip(0), vectors[:, -count:].flip(1)
    scale = values.mean().clamp(min=1e-12).sqrt()
    return Reduction(mean, (vectors / scale / std.double()[:, None]).float())


def reduced(samples: CachedViews, reduction: Reduction) -> CachedViews:
    """The same samples with components instead of features, in memory and in the features' precision."""
    whole = samples.tensor
    blocks = [whole[start : start + _BLOCK] for start in range(0, len(whole), _BLOCK)]
    parts = [reduction(block.float()).to(whole.dtype) for block in blocks]
    return samples.with_features(torch.cat(parts))
