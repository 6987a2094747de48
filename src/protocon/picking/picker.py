"""Picker: the next images to label, while features arrive and answers come in."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from protocon.base.blas_thread import on_one_blas_thread
from protocon.base.parts import Parts
from protocon.errors import DataError
from protocon.picking.closeness import covered_share
from protocon.picking.coverage import Coverage, nearest_chosen, stands_for
from protocon.picking.demand import demand, margins
from protocon.picking.reasons import reason
from protocon.picking.seen import Seen, checked_features
from protocon.picking.shaped import seen_by_labels

UNSEEN = 0.4
"""Labels that every class has in class frequencies beside its own: one that nobody has seen yet may still be there."""


def joined(chunks: Sequence[np.ndarray]) -> np.ndarray:
    """All rows; a single chunk is not copied: at a hundred thousand images it takes 800 MB."""
    return chunks[0] if len(chunks) == 1 else np.concatenate(chunks)


@dataclass(frozen=True)
class Pick:
    """An image that is worth a label."""

    index: int
    """Its position among the features."""
    reason: str
    """Why, in a few words."""
    stands_for: int
    """How many images it is the most similar labelled or picked one of, itself included."""


class Picker:
    """Chooses images by coverage at first, and by coverage of what the model is unsure of once there are labels.

    Its answers are a function of the features, the labels and the probabilities alone, not of what was asked before,
    nor of how many processors there are.

    Args:
        features: (N, D), the first images; more come with `add`.
        seed: draws which images may be picked where there are thousands.
        parts: what features consist of; None: all are one part.
    """

    def __init__(self, features: np.ndarray | None = None, *, seed: int = 0, parts: Parts | None = None) -> None:
        self._seed, self._parts = seed, parts
        self._chunks: list[np.ndarray] = []
        self._count = 0
        self._seen: Seen | None = None
        self._coverage: Coverage | None = None
        self._labelled: frozenset[int] = frozenset()
        if features is not None and len(features):
            self.add(features)

    def __len__(self) -> int:
        """Number of images so far."""
        return self._count

    def add(self, features: np.ndarray) -> None:
        """Append images; their positions follow those that are there."""
        rows = checked_features(features)
        if self._chunks and rows.shape[1] != self._chunks[0].shape[1]:
            raise DataError(f"features of {rows.shape[1]} numbers; the earlier ones have {self._chunks[0].shape[1]}")
        self._chunks.append(rows)
        self._count += len(rows)

    @on_one_blas_thread
    def prepare(self) -> None:
        """Take in what was added: about a second at 10,000 images. `next` does it where it was not done."""
        if not self._count or (self._seen is not None and len(self._seen) == self._count):
            return
        features = joined(self._chunks)
        self._chunks = [features]
        self._seen = Seen(features, self._parts)
        self._coverage, self._labelled = Coverage(self._units, seed=self._seed), frozenset()

    @property
    def seen(self) -> Seen:
        """The images as they are compared; `FastModel` takes them as they are."""
        self.prepare()
        if self._seen is None:
            raise DataError("there are no images yet")
        return self._seen

    @property
    def _units(self) -> np.ndarray:
        return self.seen.units

    @on_one_blas_thread
    def next(
        self,
        n: int = 1,
        labels: np.ndarray | None = None,
        probs: np.ndarray | None = None,
        *,
        skip: Sequence[int] = (),
        shaped: bool = False,
    ) -> list[Pick]:
        """The next images to label, the most useful first; fewer where all have labels.

        Args:
            n: how many.
            labels: (N,); −1 = unknown. None: no image has one.
            probs: a model's class probabilities (N, C), for rounds after the first; None: coverage alone.
            skip: images that are not to be picked although they have no label, and that cover nothing.
            shaped: with labels and probabilities, images are alike as the classes see them: directions in which classes
                vary count for less. Better picks, but the graph of neighbours is made anew: seconds for thousands.
        """
        if n < 1:
            raise DataError(f"{n} images are asked for; expected 1 or more")
        self.prepare()
        if self._coverage is None:
            return []
        known = self._known(labels)
        without = {*known.tolist(), *(int(i) for i in skip)}
        units, asked, near = self._units, None, None
        if labels is not None and probs is not None and len(known):
            given, opinions = np.asarray(labels), self._checked(probs)
            if shaped:
                units = seen_by_labels(self.seen.points, given, opinions)
            near = given[known][nearest_chosen(units, known)]
            asked = demand(opinions, near, labels_per_class=len(known) / len(np.unique(given[known])))
        coverage = self._covered_by(known) if units is self._units else _covering(units, known, self._seed)
        chosen = coverage.best(n, without=without, demand=None if asked is None else asked[coverage.demands])
        if len(chosen) < n:
            chosen += self._left_over(n - len(chosen), without | set(chosen), known, chosen)
        return self._picks(np.array(chosen, dtype=np.int64), known, probs, near)

    @on_one_blas_thread
    def stands_for(self, indices: Sequence[int] | np.ndarray) -> np.ndarray:
        """How many images each of these stands for, themselves included; the sum is N."""
        self.prepare()
        return stands_for(self._units, np.asarray(indices, dtype=np.int64))

    @on_one_blas_thread
    def prior(self, labels: np.ndarray, classes: int | None = None, probs: np.ndarray | None = None) -> np.ndarray:
        """Class frequencies (C,): each labelled image counts as often as it stands for others, a class `UNSEEN` more.

        Args:
            labels: (N,); −1 = unknown.
            classes: C; by default the largest label + 1.
            probs: of a model that has seen the labels, (N, C): half of the answer is what it says of all images.
        """
        self.prepare()
        known = self._known(labels)
        if not len(known):
            raise DataError("no image has a label yet; class frequencies need at least one")
        given = np.asarray(labels)[known]
        shares = np.bincount(given, self.stands_for(known), minlength=classes or 0) / self._count
        if probs is not None:
            shares = (shares + self._checked(probs).mean(axis=0)) / 2
        smoothed = shares * len(known) + UNSEEN
        frequencies: np.ndarray = smoothed / smoothed.sum()
        return frequencies

    @on_one_blas_thread
    def covered(self, labels: np.ndarray) -> float:
        """How well the labelled images cover all, from 0 (no label) to 1 (each is labelled or has a twin that is)."""
        self.prepare()
        return covered_share(self._units, self._known(labels))

    def _known(self, labels: np.ndarray | None) -> np.ndarray:
        if labels is None:
            return np.zeros(0, dtype=np.int64)
        given = np.asarray(labels)
        if given.shape != (self._count,):
            raise DataError(f"labels of shape {given.shape}; expected ({self._count},), one per image, −1 = unknown")
        return np.flatnonzero(given >= 0)

    def _checked(self, probs: np.ndarray) -> np.ndarray:
        values = np.asarray(probs)
        if values.ndim != 2 or len(values) != self._count or not values.shape[1]:
            raise DataError(f"probabilities of shape {values.shape}; expected ({self._count}, C), a row per image")
        return values

    def _covered_by(self, known: np.ndarray) -> Coverage:
        """The coverage by these images. Kept from call to call; from scratch where one is labelled no more."""
        coverage, images = self._coverage, frozenset(known.tolist())
        if coverage is None:
            raise DataError("there are no images yet")
        if not self._labelled <= images:
            coverage.covered[:] = 0.0
            self._labelled = frozenset()
        coverage.cover(sorted(images - self._labelled))
        self._labelled = images
        return coverage

    def _left_over(self, count: int, without: set[int], known: np.ndarray, chosen: list[int]) -> list[int]:
        """Images that are no candidates, those that are least like a chosen one first."""
        rest = np.array([i for i in range(self._count) if i not in without], dtype=np.int64)
        taken = np.concatenate([known, np.array(chosen, dtype=np.int64)])
        if not len(rest) or not len(taken):
            return [int(i) for i in rest[:count]]
        nearest = (self._units[rest] @ self._units[taken].T).max(axis=1)
        return [int(i) for i in rest[np.argsort(nearest, kind="stable")][:count]]

    def _picks(
        self, chosen: np.ndarray, known: np.ndarray, probs: np.ndarray | None, near: np.ndarray | None
    ) -> list[Pick]:
        if not len(chosen):
            return []
        counts = stands_for(self._units, np.concatenate([known, chosen]))[len(known) :]
        margin = None if probs is None or near is None else margins(np.asarray(probs)[chosen])
        found = []
        for place, index in enumerate(chosen.tolist()):
            apart = near is not None and probs is not None and int(np.argmax(probs[index])) != int(near[index])
            why = reason(int(counts[place]), None if margin is None else float(margin[place]), apart=apart)
            found.append(Pick(index, why, int(counts[place])))
        return found


def _covering(units: np.ndarray, known: np.ndarray, seed: int) -> Coverage:
    coverage = Coverage(units, seed=seed)
    coverage.cover(known)
    return coverage
