"""What needs no neural network, on a frozen encoder's features: the references of the suite.

Each gets the same task: features of the training images (clean view, mirror image), which of them are labelled, and the
clean view of the test images. It answers with classes of the test images.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from protocon.core.mixture import MixtureSettings, fit_mixture
from protocon.core.neighbours import nearest, neighbour_graph, unit_rows
from protocon.core.softmax_regression import LinearClassifier, softmax, softmax_regression
from protocon.references import Task, label_spreading, logistic_regression, self_training

_NEIGHBOURS = 15
_COMPONENTS = 128


@dataclass(frozen=True)
class Rows:
    """A folder as rows of numbers."""

    raw: np.ndarray
    """Clean features of the training images, standardised, (N, D)."""
    raw_test: np.ndarray
    """The same of the test images."""
    views: np.ndarray
    """Components of all views of the training images, (N, V, d)."""
    test: np.ndarray
    """Components of the test images' clean view, (T, d)."""
    classes: int

    @property
    def mean(self) -> np.ndarray:
        """Mean components of an image's views, (N, d)."""
        return np.asarray(self.views.mean(1))


Reference = Callable[[Rows, np.ndarray], np.ndarray]
"""Rows and labels (N,), −1 = unknown, to classes of the test images."""


def _task(rows: Rows, labels: np.ndarray) -> Task:
    known = labels >= 0
    return Task(rows.raw[known], labels[known], rows.raw[~known], rows.raw_test)


def _linear(rows: Rows, labels: np.ndarray) -> LinearClassifier:
    known = np.flatnonzero(labels >= 0)
    own = np.eye(rows.classes, dtype=np.float32)[labels[known]]
    views = rows.views.shape[1]
    return softmax_regression(
        rows.views[known].reshape(-1, rows.views.shape[-1]),
        np.repeat(own, views, axis=0),
        penalty=1.0 / len(known),
        weights=np.repeat(1.0 / own.sum(0)[labels[known]], views),
    )


def linear_on_views(rows: Rows, labels: np.ndarray) -> np.ndarray:
    """Logistic regression on the components, all views of the labelled images, every class the same weight."""
    return np.asarray(_linear(rows, labels).logits(rows.test).argmax(1))


def _to_test(rows: Rows, probs: np.ndarray) -> np.ndarray:
    """What the 15 nearest training images of each test image say on average, (T, C)."""
    found, cosines = nearest(unit_rows(rows.test[:, :_COMPONENTS]), unit_rows(rows.mean[:, :_COMPONENTS]), _NEIGHBOURS)
    weights = np.maximum(cosines, 0.0)
    return np.asarray((weights[:, :, None] * probs[found]).sum(1) / np.maximum(weights.sum(1), 1e-12)[:, None])


def cosine_spreading(rows: Rows, labels: np.ndarray) -> np.ndarray:
    """Labels spread along the graph of 15 neighbours, weights cos³, α = 0.9; every class starts with the same mass."""
    units = unit_rows(rows.mean[:, :_COMPONENTS])
    found, cosines = nearest(units, units, _NEIGHBOURS, same=True)
    graph = neighbour_graph(found, np.maximum(cosines, 0.0) ** 3)
    start = np.zeros((len(labels), rows.classes), dtype=np.float32)
    known = labels >= 0
    start[known, labels[known]] = 1.0
    start /= np.maximum(start.sum(0), 1.0)
    spread = start.copy()
    for _ in range(30):
        spread = 0.9 * (graph @ spread) + 0.1 * start
    return np.asarray(_to_test(rows, spread / np.maximum(spread.sum(1, keepdims=True), 1e-12)).argmax(1))


def mixture_and_graph(rows: Rows, labels: np.ndarray) -> np.ndarray:
    """Fixed point z ∝ ŷ · π · N(x; μ, Σ diagonal, shared) · exp(5 Σ w z), 30 rounds; test images by the same rule."""
    linear = _linear(rows, labels)
    anchor = np.log(softmax(linear.logits(rows.mean)) + 1e-6)
    units = unit_rows(rows.mean[:, :_COMPONENTS])
    graph = neighbour_graph(*nearest(units, units, _NEIGHBOURS, same=True))
    points = rows.mean[:, :_COMPONENTS]
    scale = np.sqrt(points.var(0).mean() + 1e-12)
    settings = MixtureSettings(rounds=30)
    found = fit_mixture(points / scale, labels, anchor, graph, settings=settings)
    test = rows.test[:, :_COMPONENTS] / scale
    logits = np.log(softmax(linear.logits(rows.test)) + 1e-6) + np.log(found.prior + 1e-12)
    logits = (
        logits + settings.likelihood * found.log_likelihood(test) + settings.smoothing * _to_test(rows, found.probs)
    )
    return np.asarray(logits.argmax(1))


REFERENCES: dict[str, Reference] = {
    "logistic-regression": lambda rows, labels: logistic_regression(_task(rows, labels)),
    "logistic-regression-views": linear_on_views,
    "label-spreading": lambda rows, labels: label_spreading(_task(rows, labels)),
    "label-spreading-cosine": cosine_spreading,
    "self-training": lambda rows, labels: self_training(_task(rows, labels)),
    "mixture-graph": mixture_and_graph,
}
