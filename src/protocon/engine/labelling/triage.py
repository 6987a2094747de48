"""Which labels can be taken as they are, and which images a person should look at, the most doubtful first."""

import math
from dataclasses import dataclass

import numpy as np

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
    """Hidden classes of unlabelled images, int32 (N,), `NONE` where unknown. Never used, only compared with."""

    @property
    def others(self) -> tuple[Opinion, Opinion, Opinion]:
        """The opinions that the refined label is held against."""
        return self.classifier, self.cluster, self.prototype


@dataclass(frozen=True)
class Triage:
    """What to do with every image."""

    accept: np.ndarray
    """bool (N,)."""
    rank: np.ndarray
    """Place in the list of images to look at, from 1, int64 (N,); 0 where accepted."""
    threshold: float
    """Confidence from which a label is accepted; infinite if none is enough."""


def disputes(judged: Judgement) -> np.ndarray:
    """How many opinions that there are differ from the refined label of each image, int64 (N,)."""
    against = np.zeros(len(judged.given), dtype=np.int64)
    for other in judged.others:
        against += (other.label != NONE) & (other.label != judged.refined.label)
    return against


def sort_out(judged: Judgement, threshold: float, *, accept_from: float | None = None) -> Triage:
    """Accept what is sure and undisputed; rank the rest.

    An unlabelled image is accepted if its refined label is at least `threshold` sure and no opinion that there is
    (classifier's, cluster's, nearest prototype's) differs from it; hidden labels may have shown that it takes more, or
    that nothing is enough. A labelled image is accepted unless the classifier
    is at least `threshold` sure of another class and the nearest prototype is not the given class either: then its
    label may be a mistake.

    Args:
        judged: all opinions.
        threshold: τ, from which an opinion counts as sure.
        accept_from: the confidence to accept labels from, if it is another; infinite to accept none.

    The list starts with doubted labels, since one wrong label in a handful does the most harm. Then come unlabelled
    images: those first whose refined label the most opinions differ from, among equals the least sure first.
    """
    labelled = judged.given != NONE
    refined, classifier = judged.refined, judged.classifier
    against = disputes(judged)
    enough = threshold if accept_from is None else accept_from
    doubted = (classifier.label != judged.given) & (classifier.confidence >= threshold)
    doubted &= (judged.prototype.label == NONE) | (judged.prototype.label != judged.given)
    accept = np.where(labelled, ~doubted, (against == 0) & (refined.confidence >= enough))
    # A labelled image's place depends on how sure the classifier is that the label is wrong.
    calm = np.where(labelled, -classifier.confidence, refined.confidence)
    order = np.lexsort((calm, np.where(labelled, 0, -against), ~labelled))
    order = order[~accept[order]]
    rank = np.zeros(len(labelled), dtype=np.int64)
    rank[order] = np.arange(1, len(order) + 1)
    return Triage(accept, rank, enough)


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
    return {
        "threshold": triage.threshold if math.isfinite(triage.threshold) else None,
        "accepted": int((unlabelled & triage.accept).sum()),
        "review": int((unlabelled & ~triage.accept).sum()),
        "doubted_labels": int((~unlabelled & ~triage.accept).sum()),
        "accept_checked": int(checked.sum()),
        "accept_precision": float(right[checked].mean()) if checked.any() else None,
        "review_finds": float((~triage.accept)[wrong].mean()) if wrong.any() else None,
    }
