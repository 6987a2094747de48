"""Labels that look wrong: those that all other labels together would not have given."""

import numpy as np

_RIDGE = 0.1
"""Share of the mean eigenvalue that is added to all: few labels, many dimensions."""
_MIN_LABELS = 3
_CLEARLY = 0.25
"""How much better another class must fit, between 0 (as well) and 1 (it alone): few labels say little."""
_MAX_LABELS = 3000
"""Labels that are looked at: the inverse takes seconds for more."""


def doubted_labels(points: np.ndarray, labels: np.ndarray, *, most: int = 50) -> tuple[tuple[int, int], ...]:
    """(row, class that fits better), the worst first.

    Ridge regression on the labelled points, each left out in turn. That costs no more than one fit: what the fit
    without point i says of i is (ŷ_i − h_ii y_i) / (1 − h_ii), with h the hat matrix.

    Args:
        points: (N, d).
        labels: (N,); −1 = unknown.
        most: how many at most.
    """
    known = np.flatnonzero(labels >= 0)[-_MAX_LABELS:]
    present, given = np.unique(labels[known], return_inverse=True)
    if len(known) < _MIN_LABELS or len(present) < 2:
        return ()
    rows = points[known].astype(np.float64)
    rows -= rows.mean(axis=0)
    gram = rows @ rows.T
    gram += 1.0  # the intercept
    gram_ridge = gram + _RIDGE * np.trace(gram) / len(gram) * np.eye(len(gram))
    hat = np.linalg.solve(gram_ridge, gram).T
    targets = np.eye(len(present))[given]
    weight = np.diag(hat)[:, None]
    left_out = (hat @ targets - weight * targets) / np.maximum(1.0 - weight, 1e-9)
    alone = np.bincount(given)[given] < 2  # of a class's only label nothing is known without it
    own = left_out[np.arange(len(known)), given]
    others = left_out.copy()
    others[np.arange(len(known)), given] = -np.inf
    doubt = np.where(alone, -np.inf, others.max(axis=1) - own)
    worst = np.argsort(-doubt, kind="stable")
    return tuple((int(known[i]), int(present[others[i].argmax()])) for i in worst[:most] if doubt[i] > _CLEARLY)
