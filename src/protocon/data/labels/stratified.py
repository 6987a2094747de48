"""Seeded choices that treat every class alike."""

import numpy as np
import torch

from protocon.base.draws import fold


def shuffled_members(labels: np.ndarray, label: int, *, seed: int, purpose: int) -> np.ndarray:
    """Positions of a class in the seed's order.

    Sorted by a hash of each position rather than by a generator: the same seed means the same images with
    every version of NumPy, and the first 4 of a class are among its first 10.

    Args:
        labels: of all images, (N,).
        label: the class.
        seed: decides the order.
        purpose: what the order is for: other purposes give other orders.
    """
    members = np.flatnonzero(labels == label)
    keys = fold(fold(fold(seed, purpose), label), torch.from_numpy(members))
    return members[np.argsort(keys.numpy(), kind="stable")]


def proportional_counts(counts: np.ndarray, fraction: float) -> np.ndarray:
    """How many of each class make up a fraction of the whole, by largest remainders.

    The total is the rounded fraction of all (0.2 % of ImageNet is 2,562 images, not 3 × 1,000). Ties go
    to the earlier class.
    """
    exact = counts * fraction
    chosen = np.floor(exact).astype(np.int64)
    missing = round(float(exact.sum())) - int(chosen.sum())
    order = np.argsort(-(exact - chosen), kind="stable")
    chosen[order[:missing]] += 1
    return chosen
