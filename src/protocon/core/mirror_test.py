"""Whether mirroring an image changes its label, asked of the labelled images.

An arrow to the left is one to the right when mirrored, and text is no text. Each labelled image is classified by the
nearest mean of the other labelled images, once as it is and once mirrored. Where mirroring changes no label, both are
right equally often; the sign test asks whether the mirrored ones are wrong more often than chance allows.
"""

import math
from dataclasses import dataclass

import numpy as np

from protocon.core.neighbours import unit_rows

CLEAR = 0.01
"""Largest p-value at which mirrored views are given up: seven images that only mirroring gets wrong, and none that it
gets right."""


@dataclass(frozen=True)
class MirrorEvidence:
    """How well labelled images are recognised by the others."""

    asked: int
    """Labelled images of classes that have another one."""
    plain: int
    """Those that are recognised as they are."""
    mirrored: int
    """Those that are recognised when mirrored."""
    worse: int
    """Recognised as they are, but not when mirrored."""
    better: int
    """The other way round."""

    @property
    def p_value(self) -> float:
        """One-sided sign test: how likely so many are worse if mirroring changes nothing."""
        count = self.worse + self.better
        return float(sum(math.comb(count, k) for k in range(self.worse, count + 1)) / 2**count)

    @property
    def changes_labels(self) -> bool:
        """Whether the evidence is clear."""
        return self.p_value <= CLEAR

    def __str__(self) -> str:
        right = f"{self.plain} are recognised as they are and {self.mirrored} when mirrored"
        return f"of {self.asked} labelled images, {right}"


def mirror_evidence(plain: np.ndarray, mirrored: np.ndarray, labels: np.ndarray) -> MirrorEvidence:
    """Ask the labels.

    Args:
        plain: features (n, D) of the labelled images.
        mirrored: features (n, D) of their mirror images.
        labels: classes (n,).
    """
    # Roots keep a few large activations from deciding every distance; what all images share is no difference.
    plain, mirrored = (np.sign(rows) * np.sqrt(np.abs(rows.astype(np.float64))) for rows in (plain, mirrored))
    centre = plain.mean(0)
    plain, mirrored = unit_rows(plain - centre), unit_rows(mirrored - centre)
    classes, own = np.unique(labels, return_inverse=True)
    members = np.eye(len(classes))[own]
    sums, counts = members.T @ plain, members.sum(0)
    asked = np.flatnonzero(counts[own] > 1)
    right = np.zeros((2, len(asked)), dtype=bool)
    for place, row in enumerate(asked):
        without = sums.copy()
        without[own[row]] -= plain[row]
        prototypes = unit_rows(without)
        for view, rows in enumerate((plain, mirrored)):
            right[view, place] = (prototypes @ rows[row]).argmax() == own[row]
    return MirrorEvidence(
        asked=len(asked),
        plain=int(right[0].sum()),
        mirrored=int(right[1].sum()),
        worse=int((right[0] & ~right[1]).sum()),
        better=int((right[1] & ~right[0]).sum()),
    )
