"""How much each image asks for a label near it, once there are labels: the unsure ones ask most."""

import numpy as np

FLOOR = 0.1
"""What an image demands about which all opinions agree and the model is sure."""
DISAGREEMENT = 0.5
"""What is added where the model and the nearest labels disagree."""


def margins(probs: np.ndarray) -> np.ndarray:
    """Probability of the likeliest class less that of the next, (N,); 1 where there is one class only."""
    if probs.shape[1] < 2:
        return np.ones(len(probs), dtype=np.float32)
    top = np.partition(probs, probs.shape[1] - 2, axis=1)[:, -2:]
    margin: np.ndarray = (top[:, 1] - top[:, 0]).astype(np.float32)
    return margin


def demand(probs: np.ndarray, neighbours: np.ndarray) -> np.ndarray:
    """What each image demands, (N,) between `FLOOR` and 1 + `DISAGREEMENT`.

    Args:
        probs: of the model, (N, C).
        neighbours: class of the labelled image nearest to each, (N,).
    """
    doubt = FLOOR + (1.0 - FLOOR) * (1.0 - margins(probs))
    apart = probs.argmax(axis=1) != neighbours
    asked: np.ndarray = (doubt + DISAGREEMENT * apart).astype(np.float32)
    return asked
