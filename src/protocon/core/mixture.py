"""Classes as Gaussians among all images, labelled or not, with a linear model's opinion and the neighbours' say.

z_i ∝ ŷ_i^λ · π · N(x_i; μ, Σ) · exp(β Σ_j w_ij z_j), in turns with π, μ and Σ: expectation maximisation in the
manner of TransCLIP (Zanella et al., 2024), with an estimated prior π and Σ diagonal and shared by the classes.
"""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

_LEAST_VARIANCE = 1e-3


@dataclass(frozen=True)
class MixtureSettings:
    """How much each part has to say."""

    anchor: float = 1.0
    """λ: of the linear model."""
    smoothing: float = 5.0
    """β: of the neighbours."""
    likelihood: float = 0.5
    """Power of the Gaussians: below 1 they are taken with a grain of salt, for components are not independent."""
    rounds: int = 20
    inner: int = 2
    """Updates of z per update of the Gaussians."""
    shrinkage: float = 0.1
    """How far variances are pulled to their mean."""
    uniform: float = 1.0
    """Images' worth of uniform prior, as a share of N, that the estimated prior is smoothed with."""


@dataclass(frozen=True)
class Mixture:
    """What expectation maximisation ends with."""

    probs: np.ndarray
    """(N, C); labelled images have their label."""
    prior: np.ndarray
    """(C,)."""
    means: np.ndarray
    """(C, d)."""
    variances: np.ndarray
    """(d,)."""

    def log_likelihood(self, points: np.ndarray) -> np.ndarray:
        """Logarithms of N(x; μ_c, Σ) up to a constant of each row, (n, C)."""
        scale = 1.0 / self.variances
        offset = 0.5 * (self.means * self.means * scale).sum(axis=1)
        values: np.ndarray = (points * scale) @ self.means.T - offset
        return values


def fit_mixture(
    points: np.ndarray,
    labels: np.ndarray,
    anchor: np.ndarray,
    graph: sparse.csr_matrix,
    *,
    prior: np.ndarray | None = None,
    settings: MixtureSettings | None = None,
) -> Mixture:
    """Fit the Gaussians and label every image.

    Args:
        points: (N, d).
        labels: (N,); −1 = unknown. Labelled images keep their label.
        anchor: log-probabilities (N, C) of the linear model.
        graph: (N, N), rows sum to 1.
        prior: class frequencies (C,); None: estimated along the way.
        settings: how much each part has to say.
    """
    chosen = settings or MixtureSettings()
    classes = anchor.shape[1]
    known = np.flatnonzero(labels >= 0)
    certain = np.eye(classes, dtype=np.float32)[labels[known]]
    frequencies = np.full(classes, 1.0 / classes) if prior is None else prior
    probs = softmax(anchor)
    probs[known] = certain
    mixture = Mixture(probs, frequencies, np.zeros(0), np.zeros(0))
    for _ in range(chosen.rounds):
        means, variances = _gaussians(points, probs, chosen)
        mixture = Mixture(probs, frequencies, means, variances)
        base = chosen.anchor * anchor + chosen.likelihood * mixture.log_likelihood(points)
        for _ in range(chosen.inner):
            probs = softmax(base + np.log(frequencies + 1e-12) + chosen.smoothing * (graph @ probs))
            probs[known] = certain
            if prior is None:
                frequencies = (probs.mean(axis=0) + chosen.uniform / classes) / (1.0 + chosen.uniform)
    return Mixture(probs, frequencies, mixture.means, mixture.variances)


def _gaussians(points: np.ndarray, probs: np.ndarray, settings: MixtureSettings) -> tuple[np.ndarray, np.ndarray]:
    """Means (C, d) and the shared variances (d,)."""
    counts = probs.sum(axis=0)
    means = (probs.T @ points) / (counts[:, None] + 1e-9)
    spread = (points * points).mean(axis=0) - (counts[:, None] * means * means).sum(axis=0) / len(points)
    variances = np.maximum(spread, _LEAST_VARIANCE)
    return means, (1.0 - settings.shrinkage) * variances + settings.shrinkage * variances.mean()


def softmax(scores: np.ndarray) -> np.ndarray:
    """Rows as probabilities, float32."""
    exponentials = np.exp(scores - scores.max(axis=1, keepdims=True))
    probs: np.ndarray = (exponentials / exponentials.sum(axis=1, keepdims=True)).astype(np.float32)
    return probs
