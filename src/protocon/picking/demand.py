"""How much each image asks for a label near it, once there are labels: the unsure ones ask most."""

import numpy as np

FLOOR = 0.5
"""What an image demands that the model is sure of and about which opinions agree: all images are to be covered."""
DOUBT = 0.35
"""What is added where the model is wholly unsure."""
DISAGREEMENT = 0.15
"""What is added where the model and the nearest label disagree."""


def margins(probs: np.ndarray) -> np.ndarray:
    """Probability of the likeliest class less that of the next, (N,); 1 where there is one class only."""
    if probs.shape[1] < 2:
        return np.ones(len(probs), dtype=np.float32)
    top = np.partition(probs, probs.shape[1] - 2, axis=1)[:, -2:]
    margin: np.ndarray = (top[:, 1] - top[:, 0]).astype(np.float32)
    return margin


def demand(probs: np.ndarray, neighbours: np.ndarray) -> np.ndarray:
    """What each image demands, (N,) between `FLOOR` and 1.

    Mild on purpose: picks that follow the model's doubt alone are worse than picks that ignore it, for few labels make
    a model that is unsure in the wrong places.

    Args:
        probs: of the model, (N, C).
        neighbours: class of the labelled image nearest to each, (N,).
    """
    apart = probs.argmax(axis=1) != neighbours
    return np.asarray(FLOOR + DOUBT * (1.0 - margins(probs)) + DISAGREEMENT * apart, dtype=np.float32)
