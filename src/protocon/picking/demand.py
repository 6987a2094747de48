"""How much each image asks for a label near it, once there are labels: the unsure and those of rare classes most."""

import numpy as np

FLOOR = 0.5
"""What an image demands that the model is sure of and about which opinions agree: all images are to be covered."""
DOUBT = 0.35
"""What is added where the model is wholly unsure."""
DISAGREEMENT = 0.15
"""What is added where the model and the nearest label disagree."""
RARITY = 0.5
"""Power of how rare an image's likely classes are: 0 ignores it, 1 makes all classes demand the same in total."""


def margins(probs: np.ndarray) -> np.ndarray:
    """Probability of the likeliest class less that of the next, (N,); 1 where there is one class only."""
    if probs.shape[1] < 2:
        return np.ones(len(probs), dtype=np.float32)
    top = np.partition(probs, probs.shape[1] - 2, axis=1)[:, -2:]
    margin: np.ndarray = (top[:, 1] - top[:, 0]).astype(np.float32)
    return margin


def rarity(probs: np.ndarray) -> np.ndarray:
    """How rare the likely classes of each image are, (N,): 1 on average, less for the most frequent classes.

    A label of a frequent class says again what others have said; one of a rare class may be its second.

    Args:
        probs: of the model, (N, C).
    """
    frequencies = probs.mean(axis=0, dtype=np.float64)
    present = np.count_nonzero(frequencies)
    inverse = 1.0 / np.maximum(frequencies, 1.0 / len(probs))
    return np.asarray(probs @ inverse / max(present, 1), dtype=np.float32)


def demand(probs: np.ndarray, neighbours: np.ndarray) -> np.ndarray:
    """What each image demands, (N,): by doubt and disagreement between `FLOOR` and 1, times the root of its rarity.

    Mild on purpose: picks that follow the model's doubt alone are worse than picks that ignore it, for few labels make
    a model that is unsure in the wrong places.

    Args:
        probs: of the model, (N, C).
        neighbours: class of the labelled image nearest to each, (N,).
    """
    apart = probs.argmax(axis=1) != neighbours
    doubt = FLOOR + DOUBT * (1.0 - margins(probs)) + DISAGREEMENT * apart
    return np.asarray(doubt * rarity(probs) ** RARITY, dtype=np.float32)
