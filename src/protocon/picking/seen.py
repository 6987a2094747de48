"""Images as picks and the quick model see them: features in one space, made once for both."""

import numpy as np

from protocon.base.parts import Parts
from protocon.core.feature_space import FeatureSpace, feature_space
from protocon.core.neighbours import unit_rows
from protocon.errors import DataError

DIMENSIONS = 128


class Seen:
    """Features of images in the space in which they are compared.

    Args:
        features: (N, D), one row per image.
        parts: what features consist of; None: all are one part.
    """

    def __init__(self, features: np.ndarray, parts: Parts | None = None) -> None:
        rows = checked_features(features)
        self.space: FeatureSpace = feature_space(rows, DIMENSIONS, parts)
        self.points = self.space(rows)
        """(N, d), of mean variance 1."""
        self.units = unit_rows(self.points)
        """The same, rows of length 1."""

    def __len__(self) -> int:
        """Number of images."""
        return len(self.points)


def checked_features(features: np.ndarray) -> np.ndarray:
    """Features (N, D) as float32, or float16 where they are: at a hundred thousand images each takes 800 MB.

    An error says what is wrong with them.
    """
    rows = np.asarray(features)
    rows = rows if rows.dtype == np.float16 else rows.astype(np.float32, copy=False)
    if rows.ndim != 2 or not rows.size:
        raise DataError(f"features of shape {rows.shape}; expected (N, D) with at least one image and one feature")
    if not np.isfinite(rows).all():
        bad = int(np.flatnonzero(~np.isfinite(rows).all(axis=1))[0])
        raise DataError(f"features of image {bad} hold NaN or infinity; remove the image or repair them")
    return rows
