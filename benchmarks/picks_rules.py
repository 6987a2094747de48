"""Rules that choose which images get a label, and the images that a seed lets them choose from."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.cluster import KMeans

from protocon.base.parts import Parts
from protocon.core.feature_space import feature_space
from protocon.core.neighbours import unit_rows
from protocon.picking.fast_model import FastModel
from protocon.picking.picker import Picker

DIMENSIONS = 64
"""Of the space in which the other rules cluster."""
POOL = 0.9
ROUNDS = (0.5, 0.25, 0.25)
"""Shares of the labels that each round picks: a first round that sees little of the folder would mislead the others."""


@dataclass(frozen=True)
class Folder:
    """Features and truth."""

    name: str
    train: np.ndarray
    """(N, D), mean over each image's views."""
    labels: np.ndarray
    parts: Parts | None = None
    """Lengths of the encoder's own features and of its pooled blocks."""

    @property
    def classes(self) -> int:
        """C."""
        return int(self.labels.max()) + 1


class Pool:
    """The images that one seed may pick from, and the model on their features."""

    def __init__(self, folder: Folder, seed: int) -> None:
        generator = np.random.default_rng([seed, 17])
        kept = np.sort(generator.permutation(len(folder.labels))[: int(POOL * len(folder.labels))])
        self.folder, self.seed, self.classes = folder, seed, folder.classes
        self.kept = kept
        self.features, self.truth = folder.train[kept], folder.labels[kept]
        self.points = feature_space(self.features, DIMENSIONS)(self.features)
        self.units = unit_rows(self.points)
        self.picker = Picker(self.features, seed=seed, parts=folder.parts)
        self.model = FastModel(self.picker.seen)

    def labels(self, chosen: Sequence[int] | np.ndarray) -> np.ndarray:
        """Truth of the chosen images, −1 elsewhere."""
        known = np.full(len(self.truth), -1)
        known[np.asarray(chosen, dtype=np.int64)] = self.truth[np.asarray(chosen, dtype=np.int64)]
        return known


Rule = Callable[[Pool, int], np.ndarray]


def random_images(pool: Pool, count: int) -> np.ndarray:
    """Any images."""
    return np.random.default_rng([pool.seed, 23]).permutation(len(pool.truth))[:count]


def random_with_all_classes(pool: Pool, count: int) -> np.ndarray:
    """Any images, some exchanged so that each class has one: which needs to know the answer."""
    generator = np.random.default_rng([pool.seed, 23])
    chosen = generator.permutation(len(pool.truth))[:count]
    for missing in np.setdiff1d(pool.truth, pool.truth[chosen]):
        counts = np.bincount(pool.truth[chosen], minlength=pool.classes)
        spare = np.flatnonzero(counts[pool.truth[chosen]] > 1)
        chosen[generator.choice(spare)] = generator.choice(np.flatnonzero(pool.truth == missing))
    return chosen


def _clusters(pool: Pool, count: int) -> KMeans:
    return KMeans(count, n_init=3, max_iter=50, random_state=pool.seed).fit(pool.points)


def kmeans_centres(pool: Pool, count: int) -> np.ndarray:
    """The image nearest to each centre of k-means with as many clusters as labels."""
    found = _clusters(pool, count)
    squared = ((pool.points - found.cluster_centers_[found.labels_]) ** 2).sum(axis=1)
    order = np.argsort(squared, kind="stable")
    return np.array([order[found.labels_[order] == cluster][0] for cluster in range(count)])


def typiclust(pool: Pool, count: int) -> np.ndarray:
    """The most typical image of each cluster: smallest mean distance to its 20 nearest neighbours there."""
    found, chosen = _clusters(pool, count), []
    for cluster in range(count):
        members = np.flatnonzero(found.labels_ == cluster)
        rows = pool.points[members].astype(np.float64)
        squared = (rows**2).sum(axis=1)[:, None] - 2 * rows @ rows.T + (rows**2).sum(axis=1)
        near = np.sort(np.sqrt(np.maximum(squared, 0)), axis=1)[:, 1:21]
        chosen.append(members[near.mean(axis=1).argmin() if near.size else 0])
    return np.array(chosen)


def probcover(pool: Pool, count: int) -> np.ndarray:
    """Most uncovered images within δ; δ is the largest radius at which 95 % of balls have one k-means label."""
    labels = KMeans(pool.classes, n_init=1, max_iter=50, random_state=pool.seed).fit(pool.units).labels_
    probe = np.linspace(0, len(pool.units) - 1, min(1000, len(pool.units))).astype(np.int64)
    cosines = pool.units[probe] @ pool.units.T
    strange = np.where(labels[probe][:, None] != labels, cosines, -1.0).max(axis=1)
    # A ball is pure if it ends before the nearest image of another cluster.
    limit = float(np.quantile(strange, 0.95))
    near = pool.units @ pool.units.T > limit
    uncovered, chosen = np.ones(len(near), dtype=np.float32), list[int]()
    for _ in range(count):
        gains = near @ uncovered
        gains[chosen] = -1
        chosen.append(int(gains.argmax()))
        uncovered[near[chosen[-1]]] = 0
    return np.array(chosen)


def coverage(pool: Pool, count: int) -> np.ndarray:
    """`protocon pick`, all at once."""
    return np.array([pick.index for pick in pool.picker.next(count)])


def coverage_in_rounds(pool: Pool, count: int) -> np.ndarray:
    """`protocon pick` three times, with the labels of the rounds before."""
    chosen: list[int] = []
    for until in np.round(np.cumsum(ROUNDS) * count).astype(int):
        size = int(until) - len(chosen)
        if not chosen:
            chosen += [pick.index for pick in pool.picker.next(size)]
            continue
        labels = pool.labels(chosen)
        probs = pool.model.predict(labels, classes=pool.classes).probs
        chosen += [pick.index for pick in pool.picker.next(size, labels, probs, shaped=True)]
    return np.array(chosen)


RULES: dict[str, Rule] = {
    "random": random_images,
    "random, all classes": random_with_all_classes,
    "k-means centres": kmeans_centres,
    "TypiClust": typiclust,
    "ProbCover": probcover,
    "coverage, 1 round": coverage,
    "coverage, 3 rounds": coverage_in_rounds,
}
