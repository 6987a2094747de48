"""A classifier on cached features that is trained again after every few answers: tenths of a second, no draws."""

from dataclasses import dataclass

import numpy as np

from protocon.base.blas_thread import on_one_blas_thread
from protocon.base.parts import Parts
from protocon.core.label_trust import mix
from protocon.core.mixture import Mixture, MixtureSettings, fit_mixture
from protocon.core.neighbours import nearest, neighbour_graph, neighbours, unit_rows
from protocon.core.softmax_regression import LinearClassifier, softmax, softmax_regression
from protocon.errors import DataError
from protocon.picking.seen import Seen, checked_features

NEIGHBOURS = 15
LINEAR_SHARE = 0.1
"""Of the linear classifier in what is said: where neighbours agree, they are surer than they should be."""
SETTINGS = MixtureSettings(
    likelihood=0.25, rounds=8, inner=3, shrinkage=0.3, label_weight=5.0, covariance="full", uniform=0.0
)


@dataclass(frozen=True)
class Prediction:
    """What the model says of all images."""

    probs: np.ndarray
    """(N, C); labelled images have their label."""
    prior: np.ndarray
    """Class frequencies (C,) as given, or the mean of `probs`."""
    linear: np.ndarray
    """Opinion of logistic regression alone, (N, C)."""


class FastModel:
    """Everything that does not depend on labels, prepared once: the space, the neighbours, the graph.

    Args:
        features: (N, D), one row per image; or as a `Picker` sees them.
        settings: of the mixture.
        parts: what features consist of; None: all are one part.
    """

    @on_one_blas_thread
    def __init__(
        self,
        features: np.ndarray | Seen,
        settings: MixtureSettings | None = None,
        *,
        parts: Parts | None = None,
    ) -> None:
        seen = features if isinstance(features, Seen) else Seen(features, parts)
        self.settings = settings or SETTINGS
        self.space, self.points, self.units = seen.space, seen.points, seen.units
        found, cosines = neighbours(self.units, NEIGHBOURS)
        self.graph = neighbour_graph(found, cosines)

    @on_one_blas_thread
    def predict(self, labels: np.ndarray, *, classes: int | None = None, prior: np.ndarray | None = None) -> Prediction:
        """Class probabilities of all images.

        Args:
            labels: (N,); −1 = unknown. At least one must be known.
            classes: C; by default the largest label + 1. A class without a label gets probability 0.
            prior: class frequencies (C,) that are known; None: all classes alike. Estimates are better left out: they
                feed on themselves, and a class that is underrated vanishes.
        """
        return self._fit(labels, classes, prior)[0]

    @on_one_blas_thread
    def predict_others(
        self, features: np.ndarray, labels: np.ndarray, *, classes: int | None = None, prior: np.ndarray | None = None
    ) -> np.ndarray:
        """Class probabilities (n, C) of images that are not among the N, by the model fitted on the N.

        Args:
            features: of the other images, (n, D).
            labels: of the N, −1 where unknown.
            classes: C; by default the largest label and one.
            prior: class frequencies (C,), if they are known.
        """
        prediction, mixture, linear, present = self._fit(labels, classes, prior)
        points = self.space(checked_features(features))
        probs = np.zeros((len(points), prediction.probs.shape[1]), dtype=np.float32)
        if linear is None or mixture is None:
            probs[:, present] = 1.0
            return probs
        near, cosines = nearest(unit_rows(points), self.units, NEIGHBOURS)
        weights = np.maximum(cosines, 0.0)
        weights /= np.maximum(weights.sum(axis=1, keepdims=True), 1e-12)
        say = np.einsum("nk,nkc->nc", weights, mixture.probs[near])
        chosen = self.settings
        scores = chosen.anchor * _log_probs(linear, points) + chosen.likelihood * mixture.log_likelihood(points)
        agreed = softmax(scores + np.log(mixture.prior + 1e-12) + chosen.smoothing * say)
        probs[:, present] = mix(softmax(linear.logits(points)), agreed, LINEAR_SHARE)
        return probs

    def _fit(
        self, labels: np.ndarray, classes: int | None, prior: np.ndarray | None
    ) -> tuple[Prediction, Mixture | None, LinearClassifier | None, np.ndarray]:
        labels = np.asarray(labels, dtype=np.int64)
        if labels.shape != (len(self.points),):
            raise DataError(f"labels of shape {labels.shape}; expected ({len(self.points)},), one per image, −1 = none")
        known = np.flatnonzero(labels >= 0)
        if not len(known):
            raise DataError("no image has a label yet; label at least one before asking for predictions")
        count = int(labels.max()) + 1 if classes is None else classes
        present, compact = np.unique(labels[known], return_inverse=True)
        whole = np.zeros((len(labels), count), dtype=np.float32)
        frequencies = np.zeros(count)
        if len(present) == 1:
            whole[:, present] = 1.0
            frequencies[present] = 1.0
            return Prediction(whole, frequencies, whole.copy()), None, None, present
        within = np.full(len(labels), -1)
        within[known] = compact
        targets = np.eye(len(present), dtype=np.float32)[compact]
        # Labels are unequal in number: every class counts the same.
        weights = 1.0 / targets.sum(axis=0)[compact]
        linear = softmax_regression(self.points[known], targets, penalty=1.0 / len(known), weights=weights)
        anchor = _log_probs(linear, self.points)
        given = np.ones(len(present)) if prior is None else np.asarray(prior, dtype=np.float64)[present]
        given = np.maximum(given, 1e-6) / np.maximum(given, 1e-6).sum()
        mixture = fit_mixture(self.points, within, anchor, self.graph, prior=given, settings=self.settings)
        opinion = whole.copy()
        opinion[:, present] = softmax(anchor)
        whole[:, present] = mix(opinion[:, present], mixture.probs, LINEAR_SHARE)
        whole[known] = np.eye(count, dtype=np.float32)[labels[known]]
        frequencies[present] = whole[:, present].mean(axis=0) if prior is None else given
        return Prediction(whole, frequencies, opinion), mixture, linear, present


def _log_probs(model: LinearClassifier, points: np.ndarray) -> np.ndarray:
    return np.asarray(np.log(softmax(model.logits(points)) + 1e-6))
