"""Who lies next to whom: nearest neighbours by cosine, and the graph that they make."""

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from scipy import sparse

Graph: TypeAlias = "np.ndarray | sparse.csr_matrix"
"""Weights of edges, (N, N)."""

_BLOCK = 1024
_SMALL = 1024
"""Graphs of up to so many points are plain arrays: all products with them take less time than SciPy's import."""
EXACT = 20_000
"""Up to so many points all pairs are compared."""
_ALL_PAIRS = 2_000
"""Up to so many points the products of all pairs take less time than to fetch those of the candidates alone."""
_CELLS = 8
"""Cells in which neighbours are looked for."""


def unit_rows(points: np.ndarray) -> np.ndarray:
    """Each row at length 1; a row of zeros stays one."""
    lengths = np.linalg.norm(points, axis=1, keepdims=True)
    rows: np.ndarray = (points / np.maximum(lengths, 1e-12)).astype(np.float32)
    return rows


def nearest(
    queries: np.ndarray, points: np.ndarray, count: int, *, same: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Indices and cosines (n, k) of the nearest points to each query, the nearest first; ties by index.

    Args:
        queries: unit rows (n, d).
        points: unit rows (N, d).
        count: k; fewer where there are fewer points.
        same: queries are the points themselves, and none is its own neighbour.
    """
    count = min(count, len(points) - same)
    found = np.empty((len(queries), count), dtype=np.int64)
    cosines = np.empty((len(queries), count), dtype=np.float32)
    for start in range(0, len(queries) if count else 0, _BLOCK):
        part = slice(start, min(start + _BLOCK, len(queries)))
        table = queries[part] @ points.T
        if same:
            table[np.arange(len(table)), np.arange(part.start, part.stop)] = -np.inf
        last = table.shape[1] - count
        chosen = np.sort(np.argpartition(table, last, axis=1)[:, last:], axis=1)
        near = np.take_along_axis(table, chosen, axis=1)
        order = np.argsort(-near, axis=1, kind="stable")
        found[part] = np.take_along_axis(chosen, order, axis=1)
        cosines[part] = np.take_along_axis(near, order, axis=1)
    return found, cosines


def neighbours(points: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """The nearest other points of each point, as `nearest` gives them; of many points nearly all of them.

    Beyond `EXACT` points each is compared only with those of its own cell and of the cells next to it: a cell holds the
    points nearest to one of √N evenly spaced ones. Seconds instead of minutes for a hundred thousand.

    Args:
        points: unit rows (N, d).
        count: k; fewer where there are fewer points.
    """
    if len(points) <= EXACT:
        return nearest(points, points, count, same=True)
    centres = np.unique(np.linspace(0, len(points) - 1, int(len(points) ** 0.5)).astype(np.int64))
    cell = nearest(points, points[centres], 1)[0][:, 0]
    beside = nearest(points[centres], points[centres], _CELLS)[0]
    members = np.split(np.argsort(cell, kind="stable"), np.cumsum(np.bincount(cell, minlength=len(centres)))[:-1])
    found = np.empty((len(points), count), dtype=np.int64)
    cosines = np.empty((len(points), count), dtype=np.float32)
    for number, rows in enumerate(members):
        around = np.sort(np.concatenate([members[other] for other in beside[number]]))
        if not len(rows):
            continue
        if len(around) <= count:  # a lonely cell
            around = np.arange(len(points))
        near, likeness = nearest(points[rows], points[around], count + 1)
        near = around[near]
        others = near != rows[:, None]
        others[others.all(axis=1), -1] = False  # exact copies may push a point out of its own list
        found[rows] = near[others].reshape(len(rows), count)
        cosines[rows] = likeness[others].reshape(len(rows), count)
    return found, cosines


def nearest_among(points: np.ndarray, candidates: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """The nearest of each point's candidates, as `nearest` gives them; ties by the candidates' order.

    Args:
        points: unit rows (N, d).
        candidates: indices (N, m).
        count: k; fewer where there are fewer candidates.
    """
    count = min(count, candidates.shape[1])
    found = np.empty((len(points), count), dtype=np.int64)
    cosines = np.empty((len(points), count), dtype=np.float32)
    for start in range(0, len(points) if count else 0, _BLOCK):
        part = slice(start, start + _BLOCK)
        if len(points) <= _ALL_PAIRS:
            table = np.take_along_axis(points[part] @ points.T, candidates[part], axis=1)
        else:
            table = np.matmul(points[candidates[part]], points[part, :, None])[:, :, 0]
        order = np.argsort(-table, axis=1, kind="stable")[:, :count]
        found[part] = np.take_along_axis(candidates[part], order, axis=1)
        cosines[part] = np.take_along_axis(table, order, axis=1)
    return found, cosines


def mutual_weights(found: np.ndarray, weights: np.ndarray) -> "sparse.csr_matrix":
    """Symmetric graph of nearest neighbours (N, N), float64: half of each edge's weight in either direction.

    Args:
        found: neighbours of each point (N, k).
        weights: of these edges (N, k).
    """
    from scipy import sparse  # imported here: small graphs do without it

    size, count = found.shape
    rows, columns = np.repeat(np.arange(size), count), found.ravel().astype(np.int64)
    # Each edge in both directions, half of its weight each way; where both ends chose it, the halves meet.
    keys = np.concatenate([rows * size + columns, columns * size + rows])
    edges, place = np.unique(keys, return_inverse=True)
    both = np.bincount(place, weights=0.5 * np.tile(weights.ravel(), 2))
    starts = np.searchsorted(edges, np.arange(size + 1) * size)
    return sparse.csr_matrix((both, edges % size, starts), shape=(size, size))


def neighbour_graph(found: np.ndarray, cosines: np.ndarray) -> Graph:
    """Symmetric graph of nearest neighbours, then each row divided by its sum; (N, N) float32.

    Args:
        found: neighbours of each point (N, k).
        cosines: their cosines (N, k); negative ones weigh nothing.
    """
    weights = np.maximum(cosines, 0.0).astype(np.float32)
    if len(found) <= _SMALL:
        return _as_array(found, weights)
    from scipy import sparse

    graph = mutual_weights(found, weights)
    starts = graph.indptr
    sums = np.add.reduceat(np.append(graph.data, 0.0), starts[:-1]) * (np.diff(starts) > 0)
    shares = graph.data / np.repeat(np.maximum(sums, 1e-12), np.diff(starts))
    divided: sparse.csr_matrix = sparse.csr_matrix((shares.astype(np.float32), graph.indices, starts), graph.shape)
    return divided


def _as_array(found: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The graph of these edges with all its zeros."""
    edges = np.zeros((len(found), len(found)))
    np.put_along_axis(edges, found, weights, axis=1)
    edges += edges.T
    shares: np.ndarray = (edges / np.maximum(edges.sum(axis=1, keepdims=True), 1e-12)).astype(np.float32)
    return shares
