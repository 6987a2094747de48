"""Classes as Gaussians among all images, labelled or not, with a linear model's opinion and the neighbours' say.

z_i ∝ ŷ_i^λ · π · N(x_i; μ, Σ) · exp(β Σ_j w_ij z_j), in turns with π, μ and Σ: expectation maximisation in the
manner of TransCLIP (Zanella et al., 2024), with an estimated prior π and Σ shared by the classes. Where class
frequencies are given, z is aligned to them every time.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from protocon.core.class_frequencies import as_frequent
from protocon.core.neighbours import Graph
from protocon.core.softmax_regression import softmax

_MIN_VARIANCE = 1e-3


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
    label_weight: float = 1.0
    """A labelled image counts as this many in means and covariance."""
    covariance: Literal["diagonal", "full"] = "diagonal"
    """Whether components vary independently within a class."""


@dataclass(frozen=True)
class Mixture:
    """What expectation maximisation ends with."""

    probs: np.ndarray
    """(N, C); labelled images have their label."""
    prior: np.ndarray
    """(C,)."""
    weights: np.ndarray
    """Σ⁻¹μ of every class, (d, C)."""
    offsets: np.ndarray
    """½ μᵀΣ⁻¹μ of every class, (C,)."""

    def log_likelihood(self, points: np.ndarray) -> np.ndarray:
        """Logarithms of N(x; μ_c, Σ) up to a constant of each row, (n, C)."""
        return np.asarray(points @ self.weights - self.offsets)


def fit_mixture(
    points: np.ndarray,
    labels: np.ndarray,
    anchor: np.ndarray,
    graph: Graph,
    *,
    prior: np.ndarray | None = None,
    frequencies: np.ndarray | None = None,
    settings: MixtureSettings | None = None,
) -> Mixture:
    """Fit the Gaussians and label every image.

    Args:
        points: (N, d).
        labels: (N,); −1 = unknown. Labelled images keep their label.
        anchor: log-probabilities (N, C) of the linear model.
        graph: (N, N), rows sum to 1.
        prior: π (C,); None: estimated along the way.
        frequencies: class frequencies (C,) that opinions are aligned to, whatever π is; None: they are as they come.
        settings: how much each part has to say.
    """
    chosen = settings or MixtureSettings()
    classes = anchor.shape[1]
    known = np.flatnonzero(labels >= 0)
    certain = np.eye(classes, dtype=np.float32)[labels[known]]
    shares = np.full(classes, 1.0 / classes) if prior is None else prior

    def opinions(logits: np.ndarray) -> np.ndarray:
        if frequencies is not None:
            return as_frequent(logits, frequencies, known, certain)
        found = softmax(logits)
        found[known] = certain
        return found

    probs = opinions(anchor)
    mixture = Mixture(probs, shares, np.zeros(0), np.zeros(0))
    importance = np.ones(len(points), dtype=np.float32)
    importance[known] = chosen.label_weight
    # An image counts the same in all classes together, whatever they are: this part of the covariance stays.
    moment = (points * importance[:, None]).T @ points
    for _ in range(chosen.rounds):
        mixture = Mixture(probs, shares, *_gaussians(points, importance[:, None] * probs, moment, chosen))
        base = chosen.anchor * anchor + chosen.likelihood * mixture.log_likelihood(points)
        for _ in range(chosen.inner):
            probs = opinions(base + np.log(shares + 1e-12) + chosen.smoothing * (graph @ probs))
            if prior is None:
                shares = (probs.mean(axis=0) + chosen.uniform / classes) / (1.0 + chosen.uniform)
    return Mixture(probs, shares, mixture.weights, mixture.offsets)


def _gaussians(
    points: np.ndarray, shares: np.ndarray, moment: np.ndarray, settings: MixtureSettings
) -> tuple[np.ndarray, np.ndarray]:
    """Σ⁻¹μ (d, C) and ½ μᵀΣ⁻¹μ (C,), each image in each class as much as `shares` (N, C) says; with Σ x xᵀ (d, d)."""
    counts, total = shares.sum(axis=0), shares.sum()
    means = (shares.T @ points) / (counts[:, None] + 1e-9)
    if settings.covariance == "diagonal":
        spread = shares.sum(axis=1) @ (points * points) / total - (counts[:, None] * means * means).sum(axis=0) / total
        variances = np.maximum(spread, _MIN_VARIANCE)
        variances = (1.0 - settings.shrinkage) * variances + settings.shrinkage * variances.mean()
        weights = means.T / variances[:, None]
    else:
        within = covariance_within(points, shares, shrinkage=settings.shrinkage, moment=moment)
        weights = np.linalg.solve(within, means.T.astype(np.float64)).astype(np.float32)
    return weights, 0.5 * (means.T * weights).sum(axis=0)


def covariance_within(
    points: np.ndarray, shares: np.ndarray, *, shrinkage: float, moment: np.ndarray | None = None
) -> np.ndarray:
    """Σ (d, d), float64: how points vary around the means of their classes.

    Args:
        points: (N, d).
        shares: how much each image counts in each class (N, C).
        shrinkage: how far Σ is pulled to a multiple of the identity.
        moment: Σ x xᵀ, each image as much as it counts in all classes, (d, d), to spare computing it again.
    """
    counts, total = shares.sum(axis=0), shares.sum()
    means = (shares.T @ points) / (counts[:, None] + 1e-9)
    around = (points * shares.sum(axis=1)[:, None]).T @ points if moment is None else moment
    within = (around - (means.T * counts) @ means) / total
    width = len(within)
    level = max(float(np.trace(within)) / width, _MIN_VARIANCE)
    shrunk: np.ndarray = (1.0 - shrinkage) * within.astype(np.float64) + shrinkage * level * np.eye(width)
    return shrunk


def seen_by_classes(points: np.ndarray, shares: np.ndarray, *, shrinkage: float) -> np.ndarray:
    """Points in the space that the classes' prototypes shape, Σ^-½ x: directions in which classes vary count for less.

    Args:
        points: (N, d).
        shares: how much each image counts in each class (N, C).
        shrinkage: how far Σ is pulled to a multiple of the identity.
    """
    factor = np.linalg.cholesky(covariance_within(points, shares, shrinkage=shrinkage))
    # Any root of Σ⁻¹ will do: all give the same distances and angles.
    return np.asarray(points @ np.linalg.inv(factor).T.astype(np.float32), dtype=np.float32)
