"""How frequent the classes are, from opinions of all images and random labels; and opinions aligned to that.

Where classes are equally frequent, chance makes the mean opinion look otherwise. So the odds against uniform
frequencies are taken to a power which is small where they are small: the estimate lies between uniform frequencies and
the mean opinion. Where the odds are clear it goes a little beyond them: images that are taken for another class make
frequencies look more even than they are.
"""

import math

import numpy as np

from protocon.core.softmax_regression import softmax

_CLEAR = 0.15
"""Distance (total variation) from uniform frequencies at which the power is half of what it can be."""
_WIDTH = 0.03
_BEYOND = 1.1
"""The power where odds are clear."""
_CHOSEN = 0.5
"""Share of the inequality that chance causes on average, below which numbers of labels were chosen."""
_TINY = 1e-6
_ALIGNING = 3
"""Rounds of alignment; more of them follow a wrong estimate further than a right one pays for."""
_LEAST = 1e-4
"""What is added to frequencies, wanted and found, while opinions are aligned: some may be 0."""


def numbers_chosen(counts: np.ndarray) -> bool:
    """Whether somebody chose how many labels each class has, so that the numbers say nothing of frequencies.

    They did where the numbers are less than half as unequal as chance would make them on average, were all classes
    equally frequent: four of each class, but for a label that was corrected, added or taken away.

    Args:
        counts: labels of each class (C,), at least one in all.
    """
    expected = float(counts.sum()) / len(counts)
    return bool(np.square(counts - expected).sum() / expected < _CHOSEN * (len(counts) - 1))


def estimated_frequencies(mean: np.ndarray, counts: np.ndarray, *, chosen: bool) -> np.ndarray:
    """Class frequencies (C,): what all images seem to be, and half of it the labels' own, unless they were chosen.

    Args:
        mean: opinion of all images (C,), sums to 1.
        counts: labels of each class (C,).
        chosen: their numbers were chosen (`numbers_chosen`, of all labels that there are).
    """
    if chosen:
        return believed_frequencies(mean)
    return believed_frequencies(0.5 * (counted_frequencies(counts) + mean))


def believed_frequencies(mean: np.ndarray) -> np.ndarray:
    """Class frequencies (C,): each class's odds against uniform to the power 1.1 · σ((d − 0.15) / 0.03).

    d is the distance of the mean opinion from uniform frequencies.

    Args:
        mean: opinion of all images (C,), sums to 1.
    """
    classes = len(mean)
    distance = 0.5 * float(np.abs(mean - 1.0 / classes).sum())
    power = _BEYOND / (1.0 + math.exp((_CLEAR - distance) / _WIDTH))
    odds = np.maximum(mean.astype(np.float64) * classes, _TINY) ** power
    return np.asarray(odds / odds.sum())


def counted_frequencies(counts: np.ndarray) -> np.ndarray:
    """Shares (C,) of labels drawn at random, pulled to uniform by as much as chance alone makes them unequal.

    Of n labels of equally frequent classes the shares are (1 − 1/C) / n away from 1/C, in squares and on average. The
    part of the squares that this leaves unexplained is the part of the difference that is believed (James and Stein).

    Args:
        counts: labels of each class (C,), at least one in all.
    """
    even = 1.0 / len(counts)
    away = counts / counts.sum() - even
    chance = (1.0 - even) / float(counts.sum())
    believed = max(0.0, 1.0 - chance / max(float(np.square(away).sum()), _TINY))
    return np.asarray(even + believed * away)


def as_frequent(logits: np.ndarray, frequencies: np.ndarray, known: np.ndarray, certain: np.ndarray) -> np.ndarray:
    """Probabilities (N, C) with every class's odds multiplied so that, on average, it is as frequent as it should be.

    This is distribution alignment, of all images at once: three rounds of dividing by what is predicted on average.

    Args:
        logits: (N, C).
        frequencies: what the mean should be, nearly, (C,).
        known: images whose label is known; they keep it, and count.
        certain: their labels, one-hot (m, C).
    """
    odds = np.zeros(len(frequencies), dtype=logits.dtype)
    for _ in range(_ALIGNING):
        probs = softmax(logits + odds)
        probs[known] = certain
        odds += np.log((frequencies + _LEAST) / (probs.mean(axis=0) + _LEAST)).astype(odds.dtype)
    probs = softmax(logits + odds)
    probs[known] = certain
    return probs
