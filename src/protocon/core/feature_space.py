"""Features of a frozen encoder as points among which distances mean something.

An encoder's pooled activations are positive with long tails: a few large ones decide every distance. Their signed
roots on the unit sphere, in a few principal components, put images of one class nearer to each other. Features of
several layers are scaled one by one, as the heads' own space does it, so that the widest does not drown the others.
"""

from dataclasses import dataclass

import numpy as np

from protocon.base.blas_thread import on_one_blas_thread, one_blas_thread
from protocon.base.eigenvectors import largest_eigenvectors
from protocon.base.parts import Part, Parts, columns

_TINY = 1e-12
_LEAST_SPREAD = 1e-6
_VARIES = 1e-7
"""Of the largest variance: less is rounding."""
_BLOCK = 4096
MOST = 2_048
"""Rows that directions are learnt from; of more, so many spread evenly, which find the same ones."""


@dataclass(frozen=True)
class Scaling:
    """Features in parts, each at a length of its own."""

    parts: Parts
    shift: np.ndarray
    """(D,)."""
    scale: np.ndarray
    """(D,)."""

    def __call__(self, features: np.ndarray) -> np.ndarray:
        """Scaled features (n, D), float32.

        Where all are one part, normalised roots. Otherwise those of each part are centred, or its features are
        standardised before where they differ in scale, and it gets the length that it has in a point.
        """
        rows = np.asarray(features, dtype=np.float32)
        if len(self.parts) == 1:
            return root_normalised(rows)
        done = []
        for place, part in columns(self.parts):
            if part.standardised:
                found = root_normalised((rows[:, place] - self.shift[place]) / self.scale[place])
            else:
                centred = root_normalised(rows[:, place]) - self.shift[place]
                found = centred / np.maximum(np.linalg.norm(centred, axis=1, keepdims=True), _TINY)
            done.append(part.length * found)
        return np.concatenate(done, axis=1)


@dataclass(frozen=True)
class FeatureSpace:
    """Root-normalised features ↦ principal components whose mean variance is 1."""

    scaling: Scaling
    mean: np.ndarray
    """(D,)."""
    matrix: np.ndarray
    """(D, d)."""

    @on_one_blas_thread
    def __call__(self, features: np.ndarray) -> np.ndarray:
        """Points (N, d) float32 of features (N, D)."""
        points = np.empty((len(features), self.matrix.shape[1]), dtype=np.float32)
        for start in range(0, len(features), _BLOCK):
            part = slice(start, start + _BLOCK)
            points[part] = (self.scaling(features[part]) - self.mean) @ self.matrix
        return points


def root_normalised(features: np.ndarray) -> np.ndarray:
    """sign(x)·√|x|, then each row at length 1; a row of zeros stays one. (…, D) → (…, D) float32."""
    rows = np.asarray(features, dtype=np.float32)
    roots = np.sign(rows) * np.sqrt(np.abs(rows))
    lengths = np.linalg.norm(roots, axis=-1, keepdims=True)
    result: np.ndarray = roots / np.maximum(lengths, _TINY)
    return result


def _scaling(rows: np.ndarray, parts: Parts | None) -> Scaling:
    consists = parts or (Part(rows.shape[1]),)
    shift, scale = np.zeros(rows.shape[1], dtype=np.float32), np.ones(rows.shape[1], dtype=np.float32)
    for place, part in columns(consists) if len(consists) > 1 else ():
        if part.standardised:
            shift[place] = rows[:, place].mean(axis=0, dtype=np.float64)
            scale[place] = np.maximum(rows[:, place].std(axis=0, dtype=np.float64), _LEAST_SPREAD)
        else:
            shift[place] = root_normalised(rows[:, place]).mean(axis=0, dtype=np.float64)
    return Scaling(consists, shift, scale)


def feature_space(features: np.ndarray, dimensions: int, parts: Parts | None = None) -> FeatureSpace:
    """The directions in which root-normalised features vary most, all scaled alike.

    One scale for all components: their different spreads tell what matters, and whitening would hide it.
    Colours do not count: images are picked in this space, and those that cover all colours of a folder cover its
    classes less well, although a classifier that knows colours is better (docs/picking.md).
    Each direction's largest entry is positive. On one thread: sums on several come in another order, and the last bits
    would depend on the machine.

    Args:
        features: (N, D).
        dimensions: d; fewer where N − 1 or D is smaller, at least 1.
        parts: what features consist of; None: all are one part.
    """
    chosen = np.unique(np.linspace(0, len(features) - 1, min(len(features), MOST)).astype(np.int64))
    scaling = _scaling(np.asarray(features[chosen], dtype=np.float32), parts)
    rows = scaling(features[chosen])
    mean = rows.mean(axis=0, dtype=np.float64)
    weights = np.concatenate([np.full(part.width, part.kind != "colours") for part in scaling.parts]).astype(np.float32)
    centred = (rows - mean.astype(np.float32)) * weights
    count, width = centred.shape
    kept = max(1, min(dimensions, count - 1, width))
    # Of fewer rows than features, from the rows' products with each other: fewer numbers, the same answer.
    few = count < width
    with one_blas_thread():
        products = (centred @ centred.T if few else centred.T @ centred).astype(np.float64) / count
        values, vectors = largest_eigenvectors(products, kept)
        values = np.maximum(values, 0.0)
        if few:  # a direction in which nothing varies is 0
            varies = values > _VARIES * max(float(values[0]), _TINY)
            vectors = np.where(varies, centred.T @ vectors / np.sqrt(np.where(varies, count * values, 1.0)), 0.0)
    largest = np.abs(vectors).argmax(axis=0)
    vectors = vectors * np.where(vectors[largest, np.arange(kept)] < 0, -1.0, 1.0)
    scale = np.sqrt(max(float(values.mean()), _TINY))
    matrix = weights[:, None] * vectors / scale
    return FeatureSpace(scaling, mean.astype(np.float32), matrix.astype(np.float32))
