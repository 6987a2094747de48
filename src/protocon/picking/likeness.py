"""How alike two images are when it comes to labels: in part along the graph of neighbours, in part by distance.

Paths of neighbours are how labels spread in training; but where the graph is torn, or one class fills it, nearness says
what paths do not. Picks by the mean of the two are better than by either (docs/picking.md).
"""

import numpy as np

from protocon.picking.closeness import Closeness
from protocon.picking.diffusion import Diffusion

DISTANCE = 0.3
"""Share of the distance; the rest is the graph's."""


class Likeness:
    """Likeness of points, from 0 to 1.

    Args:
        units: points (M, d), rows of length 1.
    """

    def __init__(self, units: np.ndarray) -> None:
        self._graph, self._distance = Diffusion(units), Closeness(units)

    def between(self, rows: np.ndarray) -> np.ndarray:
        """Of these points (n,) to all, (n, M) float32."""
        return _mean(self._graph.between(rows), self._distance.between(rows))

    def outside(self, unit: np.ndarray) -> np.ndarray:
        """Of a point (d,) that is not among them to all, (M,)."""
        return _mean(self._graph.outside(unit), self._distance.outside(unit))


def _mean(graph: np.ndarray, distance: np.ndarray) -> np.ndarray:
    """Weighted, in place."""
    graph *= 1.0 - DISTANCE
    distance *= DISTANCE
    graph += distance
    return graph
