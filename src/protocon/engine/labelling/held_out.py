"""Labels held out in turn: how far the others can be trusted where nobody knows the truth, and which look wrong."""

import csv
import io
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from protocon.base.atomic import write_bytes
from protocon.data.imageset import ImageSet
from protocon.data.labels.label_split import Split
from protocon.runs.layout import CROSS_CHECK_COLUMNS

TRUSTED = 0.9
"""Labels are accepted from the confidence at which this share of the held-out labels was predicted as given."""
MIN_CASES = 10
"""Fewer held-out labels than this tell nothing."""
MIN_AGREEMENT = 2 / 3
"""A given label is called wrong only by runs that agree with this share of the labels that they are sure of."""


@dataclass(frozen=True)
class Suspects:
    """Given labels that look wrong, the surest first; arrays of length s."""

    position: np.ndarray
    """In the training set."""
    looks_like: np.ndarray
    """The class that a run without the label sees."""
    confidence: np.ndarray
    """How sure it is."""


@dataclass(frozen=True)
class HeldOutLabels:
    """What runs without them say of labelled images; arrays of length m."""

    groups: int
    """Runs that this took."""
    position: np.ndarray
    """In the training set, ascending."""
    given: np.ndarray
    """The label that was held out."""
    found: np.ndarray
    """The label that was predicted."""
    confidence: np.ndarray
    """How sure the prediction was."""
    undisputed: np.ndarray
    """Whether no other opinion differed."""
    left_out: int
    """Labels that were not held out, since they are the only ones of their class."""

    @property
    def right(self) -> np.ndarray:
        """Whether the prediction is the given label, bool (m,)."""
        return np.asarray(self.found == self.given)

    def acceptable(self, threshold: float) -> np.ndarray:
        """Whether the image would have been accepted, bool (m,)."""
        return np.asarray(self.undisputed & (self.confidence >= threshold))

    def trusted_from(self, threshold: float) -> float:
        """The smallest confidence, `threshold` or more, from which `TRUSTED` of the accepted labels were right.

        Infinite if there is none: then nothing should be accepted unseen. It stays `threshold` where fewer than
        `MIN_CASES` reach that: nothing is known against it, and nothing for it either (`conclusive`).
        """
        accepted = self.acceptable(threshold)
        if accepted.sum() < MIN_CASES:
            return threshold
        for lowest in (threshold, *np.unique(self.confidence[accepted])):
            above = accepted & (self.confidence >= lowest)
            if above.sum() >= MIN_CASES and self.right[above].mean() >= TRUSTED:
                return float(lowest)
        return math.inf

    def conclusive(self, threshold: float) -> bool:
        """Whether enough held-out labels would have been accepted to say how many of those are right."""
        return int(self.acceptable(threshold).sum()) >= MIN_CASES

    def suspects(self, threshold: float) -> Suspects:
        """Given labels that look wrong: a run without the label is sure of another class, and no opinion differs.

        There are none where such runs often differ from the labels even when they are sure: then it is the runs that
        are wrong.
        """
        sure = self.acceptable(threshold)
        against = np.flatnonzero(sure & ~self.right)
        if len(against) and self.right[sure].mean() < MIN_AGREEMENT:
            against = against[:0]
        order = against[np.argsort(-self.confidence[against], kind="stable")]
        return Suspects(self.position[order], self.found[order], self.confidence[order])

    def otherwise(self, threshold: float) -> Suspects:
        """Given labels that were predicted otherwise without being suspects, the surest first."""
        against = np.flatnonzero(~self.right & ~np.isin(self.position, self.suspects(threshold).position))
        order = against[np.argsort(-self.confidence[against], kind="stable")]
        return Suspects(self.position[order], self.found[order], self.confidence[order])

    def summary(self, threshold: float, listed: np.ndarray | None = None) -> dict[str, Any]:
        """For result.json: how many were predicted as given, in all and of those that would have been accepted.

        Args:
            threshold: confidence from which a prediction counts as sure.
            listed: positions whose labels answer for a list to look at; they are counted apart.
        """
        hard = np.isin(self.position, np.zeros(0) if listed is None else listed)
        trusted = self.trusted_from(threshold)
        accepted = self.acceptable(trusted)
        before = self.acceptable(threshold)
        return {
            "groups": self.groups,
            "held_out": len(self.position),
            "left_out": self.left_out,
            "found": int(self.right.sum()),
            "from_list": int(hard.sum()),
            "from_list_found": int(self.right[hard].sum()),
            "threshold": trusted if math.isfinite(trusted) else None,
            "accepted": int(accepted.sum()),
            "accepted_right": int(self.right[accepted].sum()),
            "accepted_before": int(before.sum()),
            "accepted_right_before": int(self.right[before].sum()),
            "conclusive": self.conclusive(threshold),
        }


def without_groups(split: Split, groups: int) -> Iterator[Split]:
    """The split without the labels of each group, which become unlabelled; every class keeps at least one.

    A class's labels are dealt out in turn, and classes begin at different groups, so that the groups are even.
    """
    member = np.full(len(split.labelled), -1)
    for label, count in enumerate(split.counts):
        if count > 1:
            member[split.labels == label] = (label + np.arange(count)) % groups
    for group in range(groups):
        keep = member != group
        if keep.all():
            continue
        yield replace(
            split,
            labelled=split.labelled[keep],
            labels=split.labels[keep],
            ids=tuple(name for name, kept in zip(split.ids, keep, strict=True) if kept),
            unlabelled=np.union1d(split.unlabelled, split.labelled[~keep]),
            rule=f"{split.rule}, without group {group + 1} of {groups}",
        )


def write_held_out(path: Path, labels: HeldOutLabels, images: ImageSet, threshold: float) -> None:
    """A CSV with a row for each held-out label: where found and given differ, the given label may be a mistake.

    Args:
        path: of the CSV.
        labels: that were held out, and what was predicted.
        images: the training set, for names.
        threshold: confidence from which a prediction counts as sure.
    """
    names = images.class_names
    accepted = labels.acceptable(threshold)
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(CROSS_CHECK_COLUMNS)
    for row, position in enumerate(labels.position):
        found = names[int(labels.found[row])]
        sure = "yes" if accepted[row] else "no"
        given = names[int(labels.given[row])]
        writer.writerow((images.ids[int(position)], given, found, f"{labels.confidence[row]:.4f}", sure))
    write_bytes(path, text.getvalue().encode("utf-8", "surrogateescape"))
