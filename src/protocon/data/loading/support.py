"""A class-balanced support set for every step: a pure function of seed and step, as all of the order is."""

from dataclasses import dataclass

import numpy as np

from protocon.base.draws import permutation
from protocon.data.purposes import Purpose
from protocon.errors import ConfigError, DataError


@dataclass(frozen=True)
class Support:
    """How a method wants its support set (PAWS, Assran et al., 2021): some images of each of some classes."""

    per_class: int
    """Images of each class. A class with fewer labels repeats its images, each time with other views."""
    classes: int | None = None
    """Classes per step, drawn anew each time; None for all."""
    views: int = 1
    """Views of each image."""
    cropped: bool = False
    """Whether the views are like the first of the method's `crops`, as in PAWS; else they are weak."""

    def __post_init__(self) -> None:
        if self.per_class < 1 or self.views < 1 or (self.classes is not None and self.classes < 1):
            raise ConfigError(
                f"a support set of {self.per_class} images per class, {self.classes} classes and {self.views} views: "
                "each must be 1 or more"
            )


class SupportOrder:
    """Which labelled images each step's support set holds.

    Args:
        support: how many of what.
        targets: classes of the labelled set, (M,).
        seed: decides the draws.
    """

    def __init__(self, support: Support, targets: np.ndarray, *, seed: int) -> None:
        present = np.unique(targets)
        wanted = len(present) if support.classes is None else support.classes
        if wanted > len(present) or not len(present):
            raise DataError(
                f"the support set is to hold {wanted} classes per step, but there are labels of {len(present)}. "
                "Label images of more classes, or ask for fewer."
            )
        self.support = support
        self.rows = wanted * support.per_class
        self._wanted = wanted
        self._members = [np.flatnonzero(targets == label) for label in present]
        self._seed = seed

    def positions(self, number: int) -> np.ndarray:
        """Positions in the labelled set of step `number` of the whole run, class after class, int64 (rows,)."""
        classes = np.sort(permutation(len(self._members), self._seed, Purpose.SUPPORT_CLASSES, number)[: self._wanted])
        chosen = []
        for label in classes.tolist():
            members = self._members[label]
            order = members[permutation(len(members), self._seed, Purpose.SUPPORT_ORDER, number, label)]
            chosen.append(np.resize(order, self.support.per_class))  # repeats from the start where there are too few
        return np.concatenate(chosen).astype(np.int64)
