"""Which labels can be taken as they are, and which images a person should look at, the most doubtful first."""

import math
from dataclasses import dataclass

import numpy as np

from protocon.engine.labelling.held_out import MIN_CASES, TRUSTED, HeldOutLabels

NONE = -1
"""In an array of labels: there is no such opinion of this image."""


@dataclass(frozen=True)
class Opinion:
    """A label of every image and how sure it is; `NONE` and 0 where there is none."""

    label: np.ndarray
    """int32 (N,)."""
    confidence: np.ndarray
    """float32 (N,): a probability, or the cosine to the nearest prototype."""


@dataclass(frozen=True)
class Judgement:
    """All that a run believes of every image of the training set, in its order."""

    refined: Opinion
    """The label to use: the given one of a labelled image, else the method's pseudo-label."""
    classifier: Opinion
    cluster: Opinion
    prototype: Opinion
    given: np.ndarray
    """Labels that the run was given, int32 (N,), `NONE` for unlabelled images."""
    truth: np.ndarray
    """Known classes of unlabelled images, int32 (N,), `NONE` where unknown. Never used, only compared with."""

    @property
    def others(self) -> tuple[Opinion, Opinion, Opinion]:
        """The opinions that the refined label is compared with."""
        return self.classifier, self.cluster, self.prototype


@dataclass(frozen=True)
class Triage:
    """What to do with every image."""

    accept: np.ndarray
    """bool (N,): the label can be taken as it is, and a check stands behind that."""
    unchecked: np.ndarray
    """bool (N,): the label is sure and undisputed, but nothing tells how often such labels are right."""
    rank: np.ndarray
    """Place in the list of images to look at, from 1, int64 (N,); 0 where it is not in the list."""
    threshold: float
    """Confidence from which a label is accepted; infinite if none is enough."""
    looks_like: Opinion
    """What the model sees in each image: of a given label, what a run without it predicts, if there was one."""

    @property
    def words(self) -> np.ndarray:
        """`accept`, `unchecked` or `review`, (N,)."""
        return np.where(self.accept, "accept", np.where(self.unchecked, "unchecked", "review"))


def disputes(judged: Judgement) -> np.ndarray:
    """How many opinions differ from the refined label of each image, int64 (N,)."""
    against = np.zeros(len(judged.given), dtype=np.int64)
    for other in judged.others:
        against += (other.label != NONE) & (other.label != judged.refined.label)
    return against


def sort_images(judged: Judgement, threshold: float, *, held_out: HeldOutLabels | None = None) -> Triage:
    """Accept what is sure, undisputed and checked; rank the rest.

    An unlabelled image's label is *sure* if its refined label is at least `threshold` sure and no opinion that there is
    (classifier's, cluster's, nearest prototype's) differs from it. Sure labels are accepted only where something tells
    how often they are right: held-out labels, which may also raise the threshold, or the known classes of a benchmark.
    Otherwise they are unchecked.

    A labelled image is accepted unless its label looks wrong: a run without that label is sure of another class, or,
    where the label was not held out, the classifier is at least `threshold` sure of another class and the nearest
    prototype is not the given class either.

    The list starts with given labels that look wrong, since one wrong label in a handful does the most harm. Then come
    unlabelled images: those first whose refined label the most opinions differ from, among equals the least sure first.

    Args:
        judged: all opinions.
        threshold: τ, from which an opinion counts as sure.
        held_out: what runs without them say of the given labels.
    """
    labelled = judged.given != NONE
    refined = judged.refined
    against = disputes(judged)
    enough = threshold if held_out is None else held_out.trusted_from(threshold)
    known = bool((~labelled & (judged.truth != NONE)).any())
    checked = known or (held_out is not None and held_out.conclusive(threshold))
    sure = ~labelled & (against == 0) & (refined.confidence >= enough)
    looks_like, wrong = _given_labels(judged, threshold, held_out)
    accept = (labelled & ~wrong) | (sure & checked)
    unchecked = sure & ~accept
    # A labelled image's place depends on how sure the model is that the label is wrong.
    calm = np.where(labelled, -looks_like.confidence, refined.confidence)
    order = np.lexsort((calm, np.where(labelled, 0, -against), ~labelled))
    order = order[~(accept | unchecked)[order]]
    rank = np.zeros(len(labelled), dtype=np.int64)
    rank[order] = np.arange(1, len(order) + 1)
    return Triage(accept, unchecked, rank, enough, looks_like)


def _given_labels(judged: Judgement, threshold: float, held_out: HeldOutLabels | None) -> tuple[Opinion, np.ndarray]:
    """What the model sees in every image, and which given labels look wrong, bool (N,)."""
    labelled = judged.given != NONE
    label = np.where(labelled, judged.classifier.label, judged.refined.label)
    confidence = np.where(labelled, judged.classifier.confidence, judged.refined.confidence)
    wrong = labelled & (label != judged.given) & (confidence >= threshold)
    wrong &= (judged.prototype.label == NONE) | (judged.prototype.label != judged.given)
    if held_out is not None:
        label[held_out.position] = held_out.found
        confidence[held_out.position] = held_out.confidence
        wrong[held_out.position] = False
        wrong[held_out.suspects(threshold).position] = True
    return Opinion(label.astype(np.int32), confidence.astype(np.float32)), wrong


def threshold_for_new(judged: Judgement, triage: Triage) -> float:
    """The classifier's confidence from which the label of an image that the run has not seen may count as sure.

    A new image has the classifier's opinion alone, which may be surer than the label that was checked: heads on a
    frozen encoder learn soft labels by heart. So it must be as sure as the classifier is of images of the folder whose
    labels are sure: nine in ten of those that reach this confidence. Infinite where there are too few.

    Args:
        judged: all opinions.
        triage: what became of them.
    """
    unlabelled = judged.given == NONE
    confidence = judged.classifier.confidence[unlabelled]
    sure = (triage.accept | triage.unchecked)[unlabelled]
    levels, counts = np.unique(confidence, return_counts=True)
    per_level = np.bincount(np.searchsorted(levels, confidence), weights=sure, minlength=len(levels))
    images, among = np.cumsum(counts[::-1])[::-1], np.cumsum(per_level[::-1])[::-1]
    enough = levels[(images >= MIN_CASES) & (among >= TRUSTED * images)]
    return max(float(enough[0]), triage.threshold) if len(enough) else math.inf


def measure(judged: Judgement, triage: Triage) -> dict[str, float | int | None]:
    """How many labels were accepted, and where the truth is known how many of those are right.

    `accept_precision` and `review_finds` (share of all wrong labels that are in the list to look at) are None where
    there is nothing to compare with.
    """
    unlabelled = judged.given == NONE
    known = unlabelled & (judged.truth != NONE)
    right = judged.refined.label == judged.truth
    checked = known & triage.accept
    wrong = known & ~right
    new = threshold_for_new(judged, triage)
    return {
        "threshold": triage.threshold if math.isfinite(triage.threshold) else None,
        "threshold_for_new": new if math.isfinite(new) else None,
        "accepted": int((unlabelled & triage.accept).sum()),
        "unchecked": int(triage.unchecked.sum()),
        "review": int((unlabelled & (triage.rank > 0)).sum()),
        "doubted_labels": int((~unlabelled & ~triage.accept).sum()),
        "accept_checked": int(checked.sum()),
        "accept_precision": float(right[checked].mean()) if checked.any() else None,
        "review_finds": float((~triage.accept)[wrong].mean()) if wrong.any() else None,
    }
