"""How frequent the classes are, from what a model says of all images.

Where classes are equally frequent, chance makes the mean opinion look otherwise. So the odds against uniform
frequencies are taken to a power which is small where they are small: the estimate lies between uniform frequencies and
the mean opinion. Where the odds are clear it goes a little beyond them: images that are taken for another class make
frequencies look more even than they are.
"""

import math

import numpy as np

_CLEAR = 0.15
"""Distance (total variation) from uniform frequencies at which the power is half of what it can be."""
_WIDTH = 0.03
_BEYOND = 1.1
"""The power where odds are clear."""
_TINY = 1e-6


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
