"""How alike images are along the graph of their neighbours: what a label says of one, it says of the other.

Labels spread from image to image in small steps. So two images are alike if many short paths lead from one to the
other, K = Σ_t (α S)^t = (I − α S)⁻¹ with S = D^-½ W D^-½ (Zhou et al., 2004), and not if they are merely close by with
nothing in between. K is divided by the roots of its diagonal, so that every image is wholly like itself.
"""

import numpy as np
from scipy import sparse

from protocon.core.neighbours import mutual_weights, nearest, neighbours

NEIGHBOURS = 15
DECAY = 0.9
"""α: what is left of the likeness after a step."""
RANK = 128
"""Directions of S that are taken into account, the smoothest: what is left out of K lies on its diagonal."""
_POWER = 3
"""Of the cosine: an edge's weight."""
_DENSE = 512
"""Up to so many images all directions are computed at once."""
_TINY = 1e-9


class Diffusion:
    """Likeness of points along their graph.

    Args:
        units: points (M, d), rows of length 1.
        decay: α.
        rank: of S; its identity part is exact.
    """

    def __init__(self, units: np.ndarray, *, decay: float = DECAY, rank: int = RANK) -> None:
        self._units = units
        values, self._vectors = _smoothest(_normalised(units), rank)
        self._gains = 1.0 / (1.0 - decay * values) - 1.0
        self._lengths = np.sqrt(1.0 + (self._vectors**2) @ self._gains)

    def between(self, rows: np.ndarray) -> np.ndarray:
        """Of these points (n,) to all, from 0 to 1, (n, M) float32."""
        table = ((self._vectors[rows] * self._gains) @ self._vectors.T).astype(np.float32)
        table[np.arange(len(rows)), rows] += 1.0
        table /= self._lengths[rows, None].astype(np.float32)
        table /= self._lengths.astype(np.float32)
        likeness: np.ndarray = np.maximum(table, 0.0, out=table)
        return likeness

    def outside(self, unit: np.ndarray) -> np.ndarray:
        """Of a point that is not among them to all, (M,): the mean of its neighbours' likeness.

        Args:
            unit: (d,), of length 1.
        """
        found, cosines = nearest(unit[None], self._units, NEIGHBOURS)
        weights = np.maximum(cosines[0], _TINY) ** _POWER
        likeness: np.ndarray = (weights / weights.sum()) @ self.between(found[0])
        return likeness.astype(np.float32)


def _normalised(units: np.ndarray) -> sparse.csr_matrix:
    """S (M, M): symmetric, eigenvalues within −1 and 1."""
    found, cosines = neighbours(units, min(NEIGHBOURS, len(units) - 1))
    weights = mutual_weights(found, np.maximum(cosines.astype(np.float64), _TINY) ** _POWER)
    roots = sparse.diags(1.0 / np.sqrt(np.maximum(np.asarray(weights.sum(axis=1)).ravel(), _TINY**_POWER)))
    return sparse.csr_matrix(roots @ weights @ roots)


def _smoothest(graph: sparse.csr_matrix, rank: int) -> tuple[np.ndarray, np.ndarray]:
    """The largest eigenvalues (r,) and their vectors (M, r)."""
    size = graph.shape[0]
    if size <= max(_DENSE, rank + 1):
        values, vectors = np.linalg.eigh(graph.toarray())
        return values[-rank:], vectors[:, -rank:]
    from scipy.sparse.linalg import eigsh  # imported here: it takes a quarter of a second, and small folders need none

    # The start is given: otherwise it would be drawn anew each time.
    start = np.random.default_rng(0).normal(size=size)
    found: tuple[np.ndarray, np.ndarray] = eigsh(graph, k=rank, which="LA", v0=start, tol=1e-6)
    return found
