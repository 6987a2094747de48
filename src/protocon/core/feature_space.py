"""Features of a frozen encoder as points among which distances mean something.

An encoder's pooled activations are positive with long tails: a few large ones decide every distance. Their signed
roots on the unit sphere, in a few principal components, put images of one class nearer to each other.
"""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh

_TINY = 1e-12
_BLOCK = 4096
MOST = 20_000
"""Rows that directions are learnt from; of more, so many spread evenly."""


@dataclass(frozen=True)
class FeatureSpace:
    """Root-normalised features ↦ principal components whose mean variance is 1."""

    mean: np.ndarray
    """(D,)."""
    matrix: np.ndarray
    """(D, d)."""

    def __call__(self, features: np.ndarray) -> np.ndarray:
        """Points (N, d) float32 of features (N, D)."""
        points = np.empty((len(features), self.matrix.shape[1]), dtype=np.float32)
        for start in range(0, len(features), _BLOCK):
            part = slice(start, start + _BLOCK)
            points[part] = (root_normalised(features[part]) - self.mean) @ self.matrix
        return points


def root_normalised(features: np.ndarray) -> np.ndarray:
    """sign(x)·√|x|, then each row at length 1; a row of zeros stays one. (…, D) → (…, D) float32."""
    rows = np.asarray(features, dtype=np.float32)
    roots = np.sign(rows) * np.sqrt(np.abs(rows))
    lengths = np.linalg.norm(roots, axis=-1, keepdims=True)
    result: np.ndarray = roots / np.maximum(lengths, _TINY)
    return result


def feature_space(features: np.ndarray, dimensions: int) -> FeatureSpace:
    """The directions in which root-normalised features vary most, all scaled alike.

    One scale for all components: their different spreads tell what matters, and whitening would hide it.
    In double precision, and each direction's largest entry is positive, so that the result does not depend on how
    sums are ordered.

    Args:
        features: (N, D).
        dimensions: d; fewer where N − 1 or D is smaller, at least 1.
    """
    chosen = np.unique(np.linspace(0, len(features) - 1, min(len(features), MOST)).astype(np.int64))
    rows = root_normalised(features[chosen])
    mean = rows.mean(axis=0, dtype=np.float64)
    centred = rows - mean.astype(np.float32)
    count, width = centred.shape
    kept = max(1, min(dimensions, count - 1, width))
    covariance = (centred.T @ centred).astype(np.float64) / count
    values, vectors = eigh(covariance, subset_by_index=(width - kept, width - 1))
    values, vectors = np.maximum(values[::-1], 0.0), vectors[:, ::-1]
    largest = np.abs(vectors).argmax(axis=0)
    vectors = vectors * np.where(vectors[largest, np.arange(kept)] < 0, -1.0, 1.0)
    scale = np.sqrt(max(float(values.mean()), _TINY))
    return FeatureSpace(mean.astype(np.float32), (vectors / scale).astype(np.float32))
