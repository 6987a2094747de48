"""Images as the classes see them: which are alike depends on what the labels say of the directions between them."""

import numpy as np

from protocon.core.mixture import seen_by_classes
from protocon.core.neighbours import unit_rows
from protocon.picking.fast_model import SETTINGS


def seen_by_labels(points: np.ndarray, labels: np.ndarray, probs: np.ndarray) -> np.ndarray:
    """Unit rows (N, d) in the space that the classes shape, as training finds neighbours a second time.

    Args:
        points: (N, d), of mean variance 1.
        labels: (N,); −1 = unknown.
        probs: of the model, (N, C).
    """
    importance = np.where(labels >= 0, SETTINGS.label_weight, 1.0).astype(np.float32)
    shares = importance[:, None] * np.asarray(probs, dtype=np.float32)
    return unit_rows(seen_by_classes(points, shares, shrinkage=SETTINGS.shrinkage))
