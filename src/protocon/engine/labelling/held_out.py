"""Labels that were hidden and looked for again: how far the others can be trusted where nobody knows the truth."""

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

TRUSTED = 0.9
"""Labels are accepted from the confidence on at which this share of the hidden labels was found again."""
LEAST_CASES = 10
"""Of fewer hidden labels nothing can be told."""


@dataclass(frozen=True)
class HiddenLabels:
    """What a run without them said of labelled images; arrays of length m."""

    groups: int
    """Runs that this took."""
    position: np.ndarray
    """In the training set, ascending."""
    given: np.ndarray
    """The label that was hidden."""
    found: np.ndarray
    """The label that was found."""
    confidence: np.ndarray
    """How sure it was."""
    undisputed: np.ndarray
    """Whether no other opinion differed."""
    left_out: int
    """Labels that were not hidden, since they are the only one of their class."""

    @property
    def right(self) -> np.ndarray:
        """Whether the hidden label was found, bool (m,)."""
        return np.asarray(self.found == self.given)

    def acceptable(self, threshold: float) -> np.ndarray:
        """Whether the image would have been accepted, bool (m,)."""
        return np.asarray(self.undisputed & (self.confidence >= threshold))

    def trusted_from(self, threshold: float) -> float:
        """The smallest confidence, `threshold` or more, from which `TRUSTED` of the accepted labels were right.

        Infinite if there is none: then nothing should be accepted unseen. It stays `threshold` where fewer than
        `LEAST_CASES` reach that, since nothing is known against it.
        """
        accepted = self.acceptable(threshold)
        if accepted.sum() < LEAST_CASES:
            return threshold
        for least in (threshold, *np.unique(self.confidence[accepted])):
            above = accepted & (self.confidence >= least)
            if above.sum() >= LEAST_CASES and self.right[above].mean() >= TRUSTED:
                return float(least)
        return math.inf

    def summary(self, threshold: float) -> dict[str, Any]:
        """For result.json: how many were found, and of those that would have been accepted."""
        trusted = self.trusted_from(threshold)
        accepted = self.acceptable(trusted)
        before = self.acceptable(threshold)
        return {
            "groups": self.groups,
            "hidden": len(self.position),
            "left_out": self.left_out,
            "found": int(self.right.sum()),
            "threshold": trusted if math.isfinite(trusted) else None,
            "accepted": int(accepted.sum()),
            "accepted_right": int(self.right[accepted].sum()),
            "accepted_before": int(before.sum()),
            "accepted_right_before": int(self.right[before].sum()),
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


def write_hidden(path: Path, hidden: HiddenLabels, images: ImageSet, threshold: float) -> None:
    """A CSV with a row for each hidden label: where found and given differ, the given label may be a mistake."""
    names = images.class_names
    accepted = hidden.acceptable(threshold)
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(("file", "given", "found", "confidence", "sure"))
    for row, position in enumerate(hidden.position):
        found = names[int(hidden.found[row])]
        sure = "yes" if accepted[row] else "no"
        given = names[int(hidden.given[row])]
        writer.writerow((images.ids[int(position)], given, found, f"{hidden.confidence[row]:.4f}", sure))
    write_bytes(path, text.getvalue().encode("utf-8", "surrogateescape"))
