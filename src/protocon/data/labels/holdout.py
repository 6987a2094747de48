"""Test images for data that comes without a test set."""

import numpy as np

from protocon.data.labels.stratified import proportional_counts, shuffled_members
from protocon.data.purposes import Purpose
from protocon.errors import DataError


def hold_out(labels: np.ndarray, fraction: float, *, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Positions to train on and positions to test on, both sorted.

    Only labelled images are held out, in proportion to their classes, and every class keeps at least one
    labelled image to train on. All unlabelled images stay in training.

    Args:
        labels: of all images, −1 where unknown, (N,).
        fraction: of the labelled images to test on.
        seed: decides which.
    """
    classes = int(labels.max(initial=-1)) + 1
    counts = np.bincount(labels[labels >= 0], minlength=classes)
    chosen = np.minimum(proportional_counts(counts, fraction), np.maximum(counts - 1, 0))
    held = [
        shuffled_members(labels, label, seed=seed, purpose=Purpose.TEST_SPLIT)[: chosen[label]]
        for label in range(classes)
    ]
    test = np.sort(np.concatenate(held)) if held else np.empty(0, dtype=np.int64)
    if not len(test):
        raise DataError(
            f"test_fraction {fraction} of {counts.sum():,} labelled images leaves no test image. "
            "Label more images, raise it, or train without a test set."
        )
    return np.setdiff1d(np.arange(len(labels)), test), test
