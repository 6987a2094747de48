"""How close images are to each other, and how much of a folder the labels cover, as a person would see it."""

import numpy as np

_SHARE = 0.1
"""The kernel's width: the squared distance that this share of all pairs of images is within."""
_PAIRS = 500
_MOST = 5_000
"""Of more images than this a part is looked at."""


class Closeness:
    """exp(−distance² / width) between points, from 0 to 1.

    Args:
        units: points (M, d), rows of length 1.
    """

    def __init__(self, units: np.ndarray) -> None:
        self._units = units
        some = units[_spread(len(units), _PAIRS)]
        squared = 2.0 - 2.0 * (some @ some.T)[np.triu_indices(len(some), 1)]
        self._width = max(float(np.quantile(squared, _SHARE)), 1e-6) if len(squared) else 1.0

    def between(self, rows: np.ndarray) -> np.ndarray:
        """Of these points (n,) to all, (n, M) float32."""
        return self.of(self._units[rows] @ self._units.T)

    def outside(self, unit: np.ndarray) -> np.ndarray:
        """Of a point (d,) that is not among them to all, (M,)."""
        return self.of(self._units @ unit)

    def of(self, cosines: np.ndarray) -> np.ndarray:
        """Of points with these cosines."""
        closeness: np.ndarray = np.exp((np.minimum(cosines, 1.0) - 1.0) * (2.0 / self._width)).astype(np.float32)
        return closeness


def covered_share(units: np.ndarray, labelled: np.ndarray) -> float:
    """Mean closeness to the nearest labelled image: from 0 (no label) to 1 (each is labelled or has a twin that is).

    Args:
        units: points (N, d), rows of length 1.
        labelled: positions of the labelled images.
    """
    if not len(labelled):
        return 0.0
    some = _spread(len(units), _MOST)
    nearest = np.full(len(some), -1.0, dtype=np.float32)
    for start in range(0, len(labelled), 256):
        table = units[some] @ units[labelled[start : start + 256]].T
        np.maximum(nearest, table.max(axis=1), out=nearest)
    return float(Closeness(units).of(nearest).mean())


def _spread(count: int, most: int) -> np.ndarray:
    """Positions, spread evenly."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).astype(np.int64))
