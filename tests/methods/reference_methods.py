"""The defining equations of the other methods once more: slow, plain, float64, written from the papers.

Where a formula has a sum, there is a loop. Nothing here is shared with the package. n rows of a batch,
K rows of a memory, M labelled images, C classes, d dimensions.
"""

import math
from collections.abc import Sequence

import numpy as np

from tests.reference import Bools, Floats, Ints, softmax


def dot(a: Floats, b: Floats) -> float:
    """Σ_i a_i·b_i."""
    return sum(float(x) * float(y) for x, y in zip(a, b, strict=True))


# --------------------------------------------------------------------------------------------------------
# CoMatch (arXiv:2011.11183v2)


def comatch_smooth(
    probs: Floats,
    embedding: Floats,
    bank: Sequence[tuple[Floats, Floats]],
    *,
    alpha: float,
    temperature: float,
) -> Floats:
    """Eq. 7-8 for one image: q = α·p + (1 − α)·Σ_k a_k·p_k; the bank holds pairs (z_k, p_k)."""
    weights = [math.exp(dot(embedding, z) / temperature) for z, _ in bank]
    total = sum(weights)
    out = alpha * probs
    for weight, (_, p) in zip(weights, bank, strict=True):
        out = out + (1 - alpha) * weight / total * p
    return np.asarray(out, dtype=np.float64)


def comatch_graph(q: Floats, threshold: float) -> Floats:
    """Eq. 9, rows normalised."""
    n = len(q)
    graph = np.zeros((n, n))
    for b in range(n):
        for j in range(n):
            similarity = dot(q[b], q[j])
            if b == j:
                graph[b, j] = 1.0
            elif similarity >= threshold:
                graph[b, j] = similarity
        graph[b] /= graph[b].sum()
    return graph


def comatch_contrast(first: Floats, second: Floats, graph: Floats, temperature: float) -> float:
    """Eq. 10-11 between two strong views: mean over rows of H(Ŵ^q_b, Ŵ^z_b)."""
    n = len(first)
    loss = 0.0
    for b in range(n):
        row = [math.exp(dot(first[b], second[j]) / temperature) for j in range(n)]
        loss -= sum(float(graph[b, j]) * math.log(row[j] / sum(row)) for j in range(n)) / n
    return loss


# --------------------------------------------------------------------------------------------------------
# SimMatch (arXiv:2203.06915v2)


def simmatch_similarity(embedding: Floats, bank: Floats, temperature: float) -> Floats:
    """Eq. 3-4 for one image: softmax over the labelled images of the similarity over t."""
    return softmax(np.array([dot(embedding, z) / temperature for z in bank]))


def simmatch_calibrated(q: Floats, p: Floats, labels: Ints) -> Floats:
    """Eq. 7-8 for one image: q_i·p_{class of i}, normalised."""
    unfolded = np.array([float(q[i]) * float(p[labels[i]]) for i in range(len(q))])
    return np.asarray(unfolded / unfolded.sum(), dtype=np.float64)


def simmatch_refined(q: Floats, p: Floats, labels: Ints, alpha: float) -> Floats:
    """Eq. 9-10 for one image: α·p + (1 − α)·Σ_i 1(class of i = c)·q_i."""
    out = alpha * p
    for i, label in enumerate(labels):
        out[label] += (1 - alpha) * q[i]
    return np.asarray(out, dtype=np.float64)


def simmatch_bank(writes: Sequence[tuple[int, Floats]], size: int, dim: int, momentum: float) -> tuple[Floats, Bools]:
    """Eq. 12 after a sequence of writes (image, embedding); the first fills a place as it is."""
    bank, seen = np.zeros((size, dim)), np.zeros(size, dtype=np.bool_)
    for image, embedding in writes:
        mixed = momentum * bank[image] + (1 - momentum) * embedding if seen[image] else embedding
        bank[image] = mixed / math.sqrt(dot(mixed, mixed))
        seen[image] = True
    return bank, seen


# --------------------------------------------------------------------------------------------------------
# DebiasPL (arXiv:2201.01490)


def running_mean(start: Floats, batches: Sequence[Floats], momentum: float) -> Floats:
    """m·p̂ + (1 − m)·(mean over the batch's rows), one batch after another."""
    mean = start.astype(np.float64).copy()
    for batch in batches:
        for c in range(len(mean)):
            column = sum(float(row[c]) for row in batch) / len(batch)
            mean[c] = momentum * mean[c] + (1 - momentum) * column
    return mean


def debiased_label(logits: Floats, mean: Floats, strength: float) -> Floats:
    """Eq. 3 for one image, as probabilities."""
    return softmax(np.array([logits[c] - strength * math.log(mean[c]) for c in range(len(mean))]))


def marginal_loss(logits: Floats, label: int, mean: Floats, strength: float) -> float:
    """The adaptive marginal loss of one image: cross-entropy with margins Δ_c = −λ·log p̂_c."""
    scores = [math.exp(logits[c] + strength * math.log(mean[c])) for c in range(len(mean))]
    return -math.log(scores[label] / sum(scores))


# --------------------------------------------------------------------------------------------------------
# FlexMatch (arXiv:2110.08263)


def flexible_thresholds(record: Ints, classes: int, *, tau: float, warm_up: bool, convex: bool) -> Floats:
    """Eq. 5-7, 11 and 12 from each sample's last confident prediction (−1: none)."""
    sigma = [sum(1 for mark in record if mark == c) for c in range(classes)]
    unused = sum(1 for mark in record if mark == -1)
    largest = max(*sigma, unused) if warm_up else max(sigma)
    thresholds = []
    for c in range(classes):
        beta = sigma[c] / largest if largest else 0.0
        thresholds.append(tau * (beta / (2 - beta) if convex else beta))
    return np.array(thresholds)


# --------------------------------------------------------------------------------------------------------
# FreeMatch (arXiv:2205.07246)


def freematch_state(batches: Sequence[Floats], classes: int, momentum: float) -> tuple[float, Floats, Floats]:
    """τ_t, p̃_t and h̃_t after these batches (Eq. 5, 6, 10)."""
    level, marginal, histogram = 1 / classes, np.full(classes, 1 / classes), np.full(classes, 1 / classes)
    for batch in batches:
        n = len(batch)
        level = momentum * level + (1 - momentum) * sum(max(row) for row in batch) / n
        counts = np.zeros(classes)
        for row in batch:
            counts[int(np.argmax(row))] += 1 / n
        histogram = momentum * histogram + (1 - momentum) * counts
        marginal = running_mean(marginal, [batch], momentum)
    return level, marginal, histogram


def freematch_fairness(strong: Floats, reliable: Bools, marginal: Floats, histogram: Floats) -> float:
    """Eq. 9 and 11; classes that no reliable row is predicted as are left out of the sum."""
    classes, n = strong.shape[1], len(strong)
    mean, hist = np.zeros(classes), np.zeros(classes)
    for row, counts in zip(strong, reliable, strict=True):
        if counts:
            mean += row / n
            hist[int(np.argmax(row))] += 1 / n
    present = [c for c in range(classes) if hist[c] > 0]
    total = sum(mean[c] / hist[c] for c in present)
    running = sum(marginal[c] / histogram[c] for c in range(classes))
    terms = [marginal[c] / histogram[c] / running * math.log(mean[c] / hist[c] / total) for c in present]
    return float(sum(terms))


# --------------------------------------------------------------------------------------------------------
# SoftMatch (arXiv:2301.10921v2)


def softmatch_state(batches: Sequence[Floats], classes: int, momentum: float) -> tuple[float, float]:
    """μ̂_t and σ̂_t² after these batches of confidences (Eq. 6-7)."""
    mean, variance = 1 / classes, 1.0
    for batch in batches:
        n = len(batch)
        own = sum(float(c) for c in batch) / n
        spread = sum((float(c) - own) ** 2 for c in batch) / n
        mean = momentum * mean + (1 - momentum) * own
        variance = momentum * variance + (1 - momentum) * n / (n - 1) * spread
    return mean, variance


def softmatch_weight(confidence: float, mean: float, variance: float, width: float) -> float:
    """Eq. 5 with the variance divided by n_σ² (section 4.1)."""
    if confidence >= mean:
        return 1.0
    return math.exp(-((confidence - mean) ** 2) / (2 * variance / width**2))
