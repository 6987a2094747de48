"""How much each image asks for a label near it, once there are labels: those that the model is unsure of most."""

import numpy as np

FLOOR = 0.3
"""The least that an image demands: all images are to be covered, those that the model is sure of too."""
TRUST = 6
"""Labels per class at which the model is trusted to say where it is unsure; with fewer it is in part, with none not."""
DISAGREEMENT = 0.3
"""Share of the disagreement between model and nearest label in the doubt; the rest is the model's own."""


def margins(probs: np.ndarray) -> np.ndarray:
    """Probability of the likeliest class less that of the next, (N,); 1 where there is one class only."""
    if probs.shape[1] < 2:
        return np.ones(len(probs), dtype=np.float32)
    top = np.partition(probs, probs.shape[1] - 2, axis=1)[:, -2:]
    margin: np.ndarray = (top[:, 1] - top[:, 0]).astype(np.float32)
    return margin


def demand(probs: np.ndarray, neighbours: np.ndarray, *, labels_per_class: float) -> np.ndarray:
    """What each image demands, (N,): 1 where there is doubt, less where there is none.

    How much less depends on how far the model is to be trusted: few labels make a model that is unsure in the wrong
    places, and picks that follow it are worse than picks that ignore it.

    Args:
        probs: of the model, (N, C).
        neighbours: class of the labelled image nearest to each, (N,).
        labels_per_class: how many labels the model has seen, divided by the number of their classes.
    """
    floor = max(FLOOR, 1.0 - labels_per_class / TRUST)
    apart = probs.argmax(axis=1) != neighbours
    doubt = (1.0 - DISAGREEMENT) * (1.0 - margins(probs)) + DISAGREEMENT * apart
    return np.asarray(floor + (1.0 - floor) * doubt, dtype=np.float32)
