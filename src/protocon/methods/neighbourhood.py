"""The neighbourhood's label where features do not change: the fixed point of three opinions, found before training.

A linear classifier of the labels, Gaussians with one prototype per class, and a graph of nearest neighbours are
brought into agreement; then twice more, with the neighbours that images have in the space that the prototypes shape,
and with opinions aligned to the class frequencies that the last agreement estimates. Labels that are held out in turn
tell whether the agreement knows more than the linear classifier alone, and how sure it may be.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from pydantic import Field

from protocon.base.blas_thread import one_blas_thread
from protocon.core.class_frequencies import estimated_frequencies, numbers_chosen
from protocon.core.label_trust import HeldOut, fitted_temperature, linear_share, mix
from protocon.core.mixture import Mixture, MixtureSettings, fit_mixture, seen_by_classes
from protocon.core.neighbours import Graph, nearest_among, neighbour_graph, neighbours, unit_rows
from protocon.core.softmax_regression import softmax, softmax_regression
from protocon.methods.base import MethodConfig, Samples

_INNER = 3
"""Rounds of the neighbours per update of the Gaussians."""
_CANDIDATES = 4
"""Times as many candidates as neighbours: among them are those of the other space."""


class NeighbourhoodSettings(MethodConfig):
    """Settings of the fixed point; none of the defaults depends on the data."""

    inverse_penalty: float = Field(default=1.0, gt=0)
    """C of the linear classifier of the labels."""
    linear_weight: float = Field(default=0.7, ge=0)
    """Exponent of the linear classifier's opinion: it knows nothing but a few labels."""
    neighbours: int = Field(default=15, ge=1)
    """Nearest neighbours of an image in the graph."""
    graph_components: int = Field(default=128, ge=1)
    """Principal components in which neighbours are looked for."""
    shaped_neighbours: bool = True
    """Look for neighbours again before each further agreement, in the space that the prototypes shape: directions in
    which classes vary count for less."""
    aligned: bool = True
    """Align opinions to the class frequencies that the agreement before estimates. Frequencies that are given count in
    any case."""
    agreements: int = Field(default=3, ge=1)
    """Times that the three are brought into agreement, each time from the start."""
    mixture_components: int = Field(default=128, ge=1)
    """Principal components in which classes are Gaussians."""
    sharpness: float = Field(default=0.25, ge=0)
    """Exponent of the Gaussians: components are not independent, so their product claims too much."""
    smoothing: float = Field(default=6.0, ge=0)
    """Weight of the neighbours' mean opinion, in nats; 0 leaves the graph out."""
    shrinkage: float = Field(default=0.3, ge=0, le=1)
    """How far the classes' covariance is pulled to a multiple of the identity."""
    label_weight: float = Field(default=5.0, gt=0)
    """A labelled image counts as this many in the Gaussians."""
    rounds: int = Field(default=3, ge=1)
    """Updates of the Gaussians in each agreement."""
    linear_share: float = Field(default=0.1, ge=0, le=1)
    """Smallest share of the linear classifier's opinion in the soft labels that train the heads."""
    held_out_groups: int = Field(default=4, ge=0)
    """Labels are held out in so many groups, to see whether the linear classifier alone knows them better, and how sure
    the soft labels may be; 0 leaves both out."""


@dataclass(frozen=True)
class Neighbourhood:
    """What the three agree on, of all images."""

    probs: np.ndarray
    """(N + M, C)."""
    prototype: np.ndarray
    """The Gaussians' opinion alone, (N + M, C)."""
    prior: np.ndarray
    """Class frequencies (C,), estimated."""
    linear_share: float
    """Share of the linear classifier alone in `probs`."""
    temperature: float
    """At which the held-out labels are likeliest: `probs` are surer of themselves than they should be."""


def find_neighbourhood(
    samples: Samples, *, classes: int, settings: NeighbourhoodSettings, prior: np.ndarray | None = None
) -> Neighbourhood:
    """The fixed point.

    On one thread: sums on several come in another order, and the last bits would depend on the machine.

    Args:
        samples: features of the whole training set.
        classes: C.
        settings: how much each of the three counts.
        prior: class frequencies (C,) that are known; None: they are estimated.
    """
    with one_blas_thread():
        labels = _labels(samples)
        images = _Images(samples, classes, settings, prior, labels)
        anchor, mixture = images.agree(labels)
        return images.mixed(labels, anchor, mixture, images.held_out(labels))


def find_neighbourhoods(
    runs: Sequence[Samples], *, classes: int, settings: NeighbourhoodSettings, prior: np.ndarray | None = None
) -> list[Neighbourhood]:
    """The fixed points of runs that each leave out some of the same labels.

    What one run says of the labels that it leaves out is what tells the others whom to trust and how sure to be: no run
    learns how well its own are predicted, and none need hold out labels once more.

    Args:
        runs: features of the whole training set, the same for all of them, with each run's own labels.
        classes: C.
        settings: how much each of the three counts.
        prior: class frequencies (C,) that are known; None: they are estimated.
    """
    with one_blas_thread():
        labels = [_labels(run) for run in runs]
        images = _Images(runs[0], classes, settings, prior, np.max(labels, axis=0))
        found = [images.agree(own) for own in labels]
        return [
            images.mixed(own, anchor, mixture, _left_out_elsewhere(own, labels, found, classes))
            for own, (anchor, mixture) in zip(labels, found, strict=True)
        ]


class _Images:
    """All images as the three see them: what does not depend on labels is made once.

    Args:
        samples: features of the whole training set.
        classes: C.
        settings: how much each of the three counts.
        given: class frequencies (C,) that are known; None: they are estimated.
        labels: all that there are (N + M,), −1 = unknown; also those that some runs hold out.
    """

    def __init__(
        self,
        samples: Samples,
        classes: int,
        settings: NeighbourhoodSettings,
        given: np.ndarray | None,
        labels: np.ndarray,
    ) -> None:
        self.classes, self.settings, self.given = classes, settings, given
        # Asked of all labels: a label that is held out must not make equal numbers look like drawn ones.
        self.numbers_chosen = numbers_chosen(_counts(labels, classes))
        self.views = samples.views.float().cpu().numpy()
        self.rows = self.views.mean(1)
        units = unit_rows(self.rows[:, : settings.graph_components])
        self.candidates, cosines = neighbours(units, min(_CANDIDATES * settings.neighbours, len(units) - 1))
        near = slice(settings.neighbours)
        self.graph = neighbour_graph(self.candidates[:, near], cosines[:, near])
        points = self.rows[:, : settings.mixture_components]
        self.points = points / np.sqrt(points.var(0).mean() + 1e-12)

    def agree(self, labels: np.ndarray) -> tuple[np.ndarray, Mixture]:
        """Log-probabilities of the linear classifier, and the fixed point, of labels (N + M,), −1 = unknown."""
        settings = self.settings
        anchor = _linear_opinion(self.views, self.rows, labels, self.classes, settings)
        chosen = MixtureSettings(
            anchor=settings.linear_weight,
            likelihood=settings.sharpness,
            smoothing=settings.smoothing,
            shrinkage=settings.shrinkage,
            rounds=settings.rounds,
            inner=_INNER,
            label_weight=settings.label_weight,
            covariance="full",
        )
        even = np.full(self.classes, 1.0 / self.classes)
        fit = partial(fit_mixture, self.points, labels, anchor, prior=even, settings=chosen)
        mixture = fit(self.graph, frequencies=self.given)
        for _ in range(settings.agreements - 1):
            graph = self._shaped_graph(mixture.probs, labels) if settings.shaped_neighbours else self.graph
            mixture = fit(graph, frequencies=self._frequencies(mixture.probs, labels))
        return anchor, mixture

    def _frequencies(self, probs: np.ndarray, labels: np.ndarray) -> np.ndarray | None:
        """Class frequencies (C,) that these opinions are to be aligned to, given or estimated; None for none."""
        if self.given is not None or not self.settings.aligned:
            return self.given
        return self._estimated(probs, labels)

    def _estimated(self, probs: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Class frequencies (C,) from the opinions of all images and the numbers of labels."""
        return estimated_frequencies(probs.mean(0), _counts(labels, self.classes), chosen=self.numbers_chosen)

    def _shaped_graph(self, probs: np.ndarray, labels: np.ndarray) -> Graph:
        """The graph of neighbours as these opinions see them."""
        settings = self.settings
        importance = np.where(labels >= 0, settings.label_weight, 1.0).astype(np.float32)
        scaled = self.rows / np.sqrt(self.rows.var(0).mean() + 1e-12)
        shaped = seen_by_classes(scaled, importance[:, None] * probs, shrinkage=settings.shrinkage)
        return neighbour_graph(*nearest_among(unit_rows(shaped), self.candidates, settings.neighbours))

    def held_out(self, labels: np.ndarray) -> HeldOut:
        """What both say of each label that can be held out, without it: of classes that have another one."""
        groups = _groups(labels, self.settings.held_out_groups)
        known, linear, agreed = [], [], []
        for group in range(self.settings.held_out_groups):
            rows = np.flatnonzero(groups == group)
            if len(rows):
                anchor, mixture = self.agree(np.where(groups == group, -1, labels))
                known.append(labels[rows])
                linear.append(np.exp(anchor[rows]))
                agreed.append(mixture.probs[rows])
        return _held_out(known, linear, agreed, self.classes)

    def mixed(self, labels: np.ndarray, anchor: np.ndarray, mixture: Mixture, held_out: HeldOut) -> Neighbourhood:
        """The linear classifier's opinion and the fixed point, mixed as labels that were held out have it."""
        settings = self.settings
        share = linear_share(held_out, settings.linear_share)
        temperature = fitted_temperature(mix(held_out.linear, held_out.agreed, share), held_out.known)
        probs = mix(np.exp(anchor), mixture.probs, share)
        prototype = softmax(settings.sharpness * mixture.log_likelihood(self.points))
        return Neighbourhood(probs, prototype, self._estimated(probs, labels), share, temperature)


def _labels(samples: Samples) -> np.ndarray:
    """Labels of all images (N + M,); −1 = unknown."""
    labels = np.full(len(samples.views), -1)
    labels[samples.labelled.cpu().numpy()] = samples.targets.cpu().numpy()
    return labels


def _counts(labels: np.ndarray, classes: int) -> np.ndarray:
    """Labels of each class (C,); −1 = unknown."""
    return np.bincount(labels[labels >= 0], minlength=classes)


def _held_out(known: list[np.ndarray], linear: list[np.ndarray], agreed: list[np.ndarray], classes: int) -> HeldOut:
    if not known:
        nothing = np.zeros((0, classes), dtype=np.float32)
        return HeldOut(np.zeros(0, dtype=np.int64), nothing, nothing)
    return HeldOut(np.concatenate(known), np.concatenate(linear), np.concatenate(agreed))


def _left_out_elsewhere(
    own: np.ndarray, labels: list[np.ndarray], found: list[tuple[np.ndarray, Mixture]], classes: int
) -> HeldOut:
    """What the other runs say of a run's labels, each by the first of those that lack it."""
    known, linear, agreed = [], [], []
    missing = own >= 0
    for other, (anchor, mixture) in zip(labels, found, strict=True):
        rows = np.flatnonzero(missing & (other < 0))
        if len(rows):
            missing[rows] = False
            known.append(own[rows])
            linear.append(np.exp(anchor[rows]))
            agreed.append(mixture.probs[rows])
    return _held_out(known, linear, agreed, classes)


def _groups(labels: np.ndarray, count: int) -> np.ndarray:
    """The group in which each label is held out (N + M,); −1: never, because its class has no other, or no label."""
    groups = np.full(len(labels), -1)
    for label in np.unique(labels[labels >= 0]) if count else ():
        members = np.flatnonzero(labels == label)
        if len(members) > 1:
            groups[members] = (np.arange(len(members)) + label) % count
    return groups


def _linear_opinion(
    views: np.ndarray, rows: np.ndarray, labels: np.ndarray, classes: int, settings: NeighbourhoodSettings
) -> np.ndarray:
    """Log-probabilities (N + M, C) of a linear classifier that learnt all views of the labelled images."""
    known = np.flatnonzero(labels >= 0)
    own = np.eye(classes, dtype=np.float32)[labels[known]]
    linear = softmax_regression(
        views[known].reshape(-1, views.shape[-1]),
        np.repeat(own, views.shape[1], axis=0),
        penalty=1.0 / (settings.inverse_penalty * len(known)),
        # Labels drawn at random are unequal in number: every class counts the same.
        weights=np.repeat(1.0 / own.sum(0)[labels[known]], views.shape[1]),
    )
    return np.log(softmax(linear.logits(rows)) + 1e-6)
