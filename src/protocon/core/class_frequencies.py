"""How frequent the classes are, from what a model says of all images, and how often it is right.

The mean opinion errs in two ways. Where classes are equally frequent, chance makes it look otherwise. And where the
model is often wrong, it takes images of a frequent class for others, so that the mean is nearer to uniform than the
truth. So the odds against uniform frequencies are taken to a power: less than 1 where they are small, more than 1 where
they are large although many held-out labels were predicted wrongly.
"""

import math

import numpy as np

_CLEAR = 0.15
"""Distance (total variation) from uniform frequencies at which a difference begins to count for more than half."""
_WIDTH = 0.05
_POWER = 0.8
"""Of the odds, where they are clear and the model is always right."""
_LARGEST = 3.0
_TINY = 1e-6


def spread_frequencies(mean: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Class frequencies (C,), each class's odds against uniform to one power for all of them.

    power = sigmoid((d − 0.15) / 0.05) · min(3, 0.8 / a): d is the distance of the mean opinion from uniform
    frequencies, a the share of held-out labels that are predicted, one right and one wrong one added. Where no label
    could be held out, the second factor is 1.

    Args:
        mean: opinion of all images (C,), sums to 1.
        right: for each held-out label whether it is predicted, bool (m,).
    """
    classes = len(mean)
    distance = 0.5 * float(np.abs(mean - 1.0 / classes).sum())
    clear = 1.0 / (1.0 + math.exp((_CLEAR - distance) / _WIDTH))
    accuracy = (float(right.sum()) + 1.0) / (len(right) + 2.0)
    power = clear * (min(_LARGEST, _POWER / accuracy) if len(right) else 1.0)
    odds = np.maximum(mean.astype(np.float64) * classes, _TINY) ** power
    return np.asarray(odds / odds.sum())
