"""A linear classifier of soft labels: convex, so that there is one answer and nothing to draw."""

from dataclasses import dataclass

import numpy as np

from protocon.base.blas_thread import one_blas_thread
from protocon.core.lbfgs import minimise


@dataclass(frozen=True)
class LinearClassifier:
    """x ↦ x·W + b."""

    weights: np.ndarray
    """(d, C) float32."""
    bias: np.ndarray
    """(C,) float32."""

    def logits(self, rows: np.ndarray) -> np.ndarray:
        """(n, C) of rows (n, d)."""
        return np.asarray(rows @ self.weights + self.bias, dtype=np.float32)


def softmax(logits: np.ndarray) -> np.ndarray:
    """Probabilities along the last axis, float32."""
    powers = np.exp(logits - logits.max(-1, keepdims=True))
    return np.asarray(powers / powers.sum(-1, keepdims=True), dtype=np.float32)


def softmax_regression(
    rows: np.ndarray, targets: np.ndarray, *, penalty: float, steps: int = 100, weights: np.ndarray | None = None
) -> LinearClassifier:
    """Minimise mean cross-entropy + penalty / 2 · ‖W‖² by L-BFGS; the bias is not penalised.

    On one thread: sums on several come in another order, and the last bits of the answer would depend on the machine.

    Args:
        rows: (n, d).
        targets: class probabilities (n, C).
        penalty: of the weights.
        steps: at most this many iterations.
        weights: how much each row counts, (n,); all alike by default.
    """
    count, width = rows.shape
    classes = targets.shape[1]
    design = np.hstack([rows, np.ones((count, 1), rows.dtype)]).astype(np.float32)
    wanted = targets.astype(np.float32)
    counts = np.ones(count) if weights is None else weights
    share = (counts / counts.sum()).astype(np.float32)[:, None]
    ridge = np.full((width + 1, 1), penalty, np.float32)
    ridge[-1] = 0

    def loss(flat: np.ndarray) -> tuple[float, np.ndarray]:
        matrix = flat.reshape(width + 1, classes).astype(np.float32)
        logits = design @ matrix
        logits -= logits.max(1, keepdims=True)
        powers = np.exp(logits)
        total = powers.sum(1, keepdims=True)
        value = -(share * wanted * (logits - np.log(total))).sum(dtype=np.float64)
        slope = design.T @ (share * (powers / total - wanted)) + ridge * matrix
        return float(value + 0.5 * (ridge * matrix * matrix).sum(dtype=np.float64)), slope.astype(np.float64).ravel()

    with one_blas_thread():
        found = minimise(loss, np.zeros((width + 1) * classes), steps=steps)
    matrix = found.reshape(width + 1, classes).astype(np.float32)
    return LinearClassifier(matrix[:-1], matrix[-1])
