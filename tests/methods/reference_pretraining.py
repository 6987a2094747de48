"""Losses and states of the methods without labels once more: slow, plain, float64, written without `protocon.core`.

Where a formula has a sum, there is a loop. Names follow the papers.
"""

import math

import numpy as np
import numpy.typing as npt

from tests.reference import cross_entropy, entropy, softmax

Floats = npt.NDArray[np.float64]


def nt_xent(first: Floats, second: Floats, temperature: float) -> float:
    """SimCLR's Eq. 1 and the mean of Algorithm 1 over all 2n views."""
    views = [*first, *second]
    n = len(first)
    total = 0.0
    for i, view in enumerate(views):
        j = (i + n) % (2 * n)
        below = sum(math.exp(float(view @ views[k]) / temperature) for k in range(2 * n) if k != i)
        total -= math.log(math.exp(float(view @ views[j]) / temperature) / below)
    return total / (2 * n)


def info_nce(query: Floats, key: Floats, queue: Floats, temperature: float) -> float:
    """MoCo's Eq. 1: one positive, the queue's keys as negatives."""
    total = 0.0
    for q, k in zip(query, key, strict=True):
        positive = math.exp(float(q @ k) / temperature)
        negatives = sum(math.exp(float(q @ other) / temperature) for other in queue)
        total -= math.log(positive / (positive + negatives))
    return total / len(query)


def enqueue(queue: list[Floats], rows: Floats, size: int) -> list[Floats]:
    """First in, first out; the oldest first in the result."""
    return [*queue, *rows][-size:]


def sinkhorn(scores: Floats, epsilon: float, rounds: int) -> Floats:
    """SwAV's appendix A.1: rows add up to 1, columns to n / K as nearly as so many rounds bring it."""
    n, k = scores.shape
    q = np.exp(scores / epsilon).T
    q /= q.sum()
    for _ in range(rounds):
        for prototype in range(k):
            q[prototype] /= q[prototype].sum() * k
        for image in range(n):
            q[:, image] /= q[:, image].sum() * n
    return np.asarray((q * n).T)


def swav_loss(scores: list[Floats], temperature: float, epsilon: float, rounds: int) -> float:
    """SwAV's Eq. 1-2 over all pairs of a large crop's code and another crop's prediction."""
    terms = []
    for large in (0, 1):
        codes = sinkhorn(scores[large], epsilon, rounds)
        for crop, said in enumerate(scores):
            if crop != large:
                terms.append(np.mean([cross_entropy(c, row / temperature) for c, row in zip(codes, said, strict=True)]))
    return float(np.mean(terms))


def dino_loss(
    student: list[Floats], teacher: list[Floats], centre: Floats, student_temperature: float, teacher_temperature: float
) -> float:
    """DINO's Algorithm 1 with multi-crop (Eq. 3)."""
    terms = []
    for large, taught in enumerate(teacher):
        for crop, said in enumerate(student):
            if crop != large:
                each = [
                    cross_entropy(softmax((t - centre) / teacher_temperature), s / student_temperature)
                    for t, s in zip(taught, said, strict=True)
                ]
                terms.append(np.mean(each))
    return float(np.mean(terms))


def momentum_mean(states: list[Floats], keep: list[float]) -> Floats:
    """MoCo's Eq. 2, and DINO's teacher: after each step, a share of the old copy and the rest of the new weights."""
    copied = states[0]
    for share, state in zip(keep, states[1:], strict=True):
        copied = share * copied + (1 - share) * state
    return copied


def key_leak(keys: Floats, again: Floats) -> float:
    """How far keys move (1 − cosine) in other company, over 1 − ‖mean‖², the mean of 1 − cosine over all pairs."""
    moved = np.mean([1 - float(key @ other) for key, other in zip(keys, again, strict=True)])
    apart = np.mean([1 - float(key @ other) for key in keys for other in keys])
    return float(moved / apart)


def knn_label(query: Floats, bank: Floats, labels: list[int], neighbours: int, temperature: float) -> int:
    """The weighted vote of the nearest neighbours by cosine."""
    cosines = [float(query @ row / np.linalg.norm(query) / np.linalg.norm(row)) for row in bank]
    votes: dict[int, float] = {}
    for place in sorted(range(len(bank)), key=lambda i: -cosines[i])[:neighbours]:
        votes[labels[place]] = votes.get(labels[place], 0.0) + math.exp(cosines[place] / temperature)
    return max(votes, key=lambda label: votes[label])


def usage(targets: Floats) -> float:
    """Entropy of the mean target as a share of ln K."""
    return entropy(targets.mean(0)) / math.log(targets.shape[1])
