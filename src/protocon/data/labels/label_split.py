"""Which images count as labelled: chosen by seed, or all that have a label."""

from dataclasses import dataclass

import numpy as np

from protocon.data.imageset import ImageSet
from protocon.data.labels.stratified import proportional_counts, shuffled_members
from protocon.data.purposes import Purpose
from protocon.errors import ConfigError, DataError


@dataclass(frozen=True, eq=False)
class Split:
    """Positions of the labelled and the unlabelled training images."""

    labelled: np.ndarray
    """int64 (n,), ascending."""
    labels: np.ndarray
    """Their classes, int64 (n,)."""
    ids: tuple[str, ...]
    """Their ids."""
    unlabelled: np.ndarray
    """int64 (m,), ascending. Without the labelled images, unless they were asked for."""
    class_names: tuple[str, ...]
    size: int
    """Images in the whole training set."""
    dataset: str
    fingerprint: str
    """Of the training set that the positions belong to."""
    rule: str
    """How the labelled images were chosen, in words."""
    seed: int

    @property
    def counts(self) -> np.ndarray:
        """Labelled images of each class, int64 (C,)."""
        return np.bincount(self.labels, minlength=len(self.class_names))


NO_LABELS = "no labels"
"""The rule of a split whose images are all unlabelled."""


def split_without_labels(images: ImageSet, *, seed: int = 0) -> Split:
    """All images unlabelled, for methods that learn without labels. Labels that are there are left unused."""
    nothing = np.empty(0, dtype=np.int64)
    return Split(
        labelled=nothing,
        labels=nothing,
        ids=(),
        unlabelled=np.arange(len(images), dtype=np.int64),
        class_names=images.class_names,
        size=len(images),
        dataset=images.name,
        fingerprint=images.fingerprint(),
        rule=NO_LABELS,
        seed=seed,
    )


def make_split(
    images: ImageSet,
    *,
    seed: int = 0,
    per_class: int | None = None,
    fraction: float | None = None,
    include_labelled: bool = False,
) -> Split:
    """Choose the labelled images: `per_class` of each class, a `fraction` of all, or (neither) all known.

    The same seed chooses the same images anywhere, and a smaller number per class is always among a larger one. A
    fraction is shared out in proportion to the classes, at least one each. All others are unlabelled, whether or not
    their label is known; `include_labelled` adds the labelled ones to them.

    Args:
        images: the training set.
        seed: decides which are chosen.
        per_class: labelled images of each class.
        fraction: share of the known labels that is kept.
        include_labelled: whether the labelled images are among the unlabelled ones too.
    """
    if seed < 0:
        raise ConfigError(f"The split's seed is {seed}; it must be 0 or more.")
    if len(images.class_names) < 2:
        raise DataError(f"{images.name} has {len(images.class_names)} classes; a split needs at least two.")
    known = np.bincount(images.labels[images.labels >= 0], minlength=len(images.class_names))
    wanted, rule = _wanted(images, known, per_class, fraction)
    chosen = [
        shuffled_members(images.labels, label, seed=seed, purpose=Purpose.LABEL_SPLIT)[:count]
        for label, count in enumerate(wanted)
    ]
    labelled = np.sort(np.concatenate(chosen)).astype(np.int64)
    everything = np.arange(len(images), dtype=np.int64)
    unlabelled = everything if include_labelled else np.setdiff1d(everything, labelled)
    if not len(unlabelled):
        raise DataError(
            f"{images.name}: all {len(images):,} images are labelled, so none is left as unlabelled. "
            "Ask for fewer labels (--labels-per-class), add images of unknown class, or set include_labelled."
        )
    return Split(
        labelled=labelled,
        labels=images.labels[labelled],
        ids=tuple(images.ids[int(i)] for i in labelled),
        unlabelled=unlabelled,
        class_names=images.class_names,
        size=len(images),
        dataset=images.name,
        fingerprint=images.fingerprint(),
        rule=rule,
        seed=seed,
    )


def _wanted(
    images: ImageSet, known: np.ndarray, per_class: int | None, fraction: float | None
) -> tuple[np.ndarray, str]:
    """How many labelled images each class gets, and the rule in words."""
    if per_class is not None and fraction is not None:
        raise ConfigError(f"Both per_class ({per_class}) and fraction ({fraction}) are given. Keep one.")
    least = 1 if per_class is None else per_class
    if least < 1:
        raise ConfigError(f"per_class is {per_class}; it must be 1 or more.")
    if fraction is not None and not 0 < fraction <= 1:
        raise ConfigError(f"fraction is {fraction}; it must lie between 0 and 1: 0.01 is one per cent.")
    short = [f"{images.class_names[int(i)]} ({known[i]})" for i in np.flatnonzero(known < least)]
    if short:
        more = f" and {len(short) - 5} more" if len(short) > 5 else ""
        raise DataError(
            f"{images.name}: at least {least} of every class must have a label, but there are fewer of "
            f"{', '.join(short[:5])}{more}. Ask for fewer, or label more of them."
        )
    if per_class is not None:
        return np.full(len(known), per_class), f"{per_class} a class"
    if fraction is not None:
        return np.maximum(proportional_counts(known, fraction), 1), f"{100 * fraction:g} % of the known labels"
    return known, "all known labels"
