"""The directions in which points vary most, from a symmetric matrix."""

import numpy as np

from protocon.base.blas_thread import on_one_blas_thread

_SMALL = 1024
"""Of matrices up to this side all eigenvectors are there sooner than SciPy, which can leave out the others, is imported
and has found the largest."""


@on_one_blas_thread
def largest_eigenvectors(symmetric: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """The largest eigenvalues (k,), largest first, and their vectors (n, k).

    On one thread: sums on several come in another order, and the last bits would depend on the machine.

    Args:
        symmetric: (n, n), double precision.
        count: k.
    """
    size = len(symmetric)
    if size <= _SMALL:
        values, vectors = np.linalg.eigh(symmetric)
        values, vectors = values[size - count :], vectors[:, size - count :]
    else:
        from scipy.linalg import eigh  # imported here: it takes a tenth of a second, and small folders do not need it

        values, vectors = eigh(symmetric, subset_by_index=(size - count, size - 1))
    return values[::-1].copy(), vectors[:, ::-1].copy()
