"""How frequent the classes are, from what a model says of all images.

Where classes are equally frequent, chance makes the mean opinion look otherwise. So the odds against uniform
frequencies are taken to a power between 0 and 1, which is small where they are small: the estimate lies between uniform
frequencies and the mean opinion.
"""

import math

import numpy as np

_CLEAR = 0.15
"""Distance (total variation) from uniform frequencies at which half of the odds' logarithms are believed."""
_WIDTH = 0.05
_TINY = 1e-6


def believed_frequencies(mean: np.ndarray) -> np.ndarray:
    """Class frequencies (C,): each class's odds against uniform to the power σ((d − 0.15) / 0.05).

    d is the distance of the mean opinion from uniform frequencies.

    Args:
        mean: opinion of all images (C,), sums to 1.
    """
    classes = len(mean)
    distance = 0.5 * float(np.abs(mean - 1.0 / classes).sum())
    power = 1.0 / (1.0 + math.exp((_CLEAR - distance) / _WIDTH))
    odds = np.maximum(mean.astype(np.float64) * classes, _TINY) ** power
    return np.asarray(odds / odds.sum())
