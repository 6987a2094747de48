"""Labels as scikit-learn users give them: numbers or text, with −1, None or NaN where there is none."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from protocon.data.imageset import UNKNOWN

_NO_TEXT = ("", str(UNKNOWN), "nan")


@dataclass(frozen=True)
class Labels:
    """What is known about the training samples."""

    classes: np.ndarray
    """The different labels, sorted, as they were given, (C,)."""
    codes: np.ndarray
    """Position of each sample's label in `classes`, int64 (n,); −1 = unlabelled."""

    @property
    def known(self) -> int:
        """Samples that have a label."""
        return int((self.codes != UNKNOWN).sum())


def read_labels(y: Any) -> Labels:
    """Classes and codes of y; ValueError where there are fewer than two classes."""
    if y is None:
        raise ValueError("ProtoConClassifier requires y to be passed, but the target y is None; use −1 for unlabelled.")
    given = column_or_1d(as_array(y), warn=True)
    unknown = unlabelled(given)
    known = _one_type(given[~unknown])
    if known.dtype.kind == "f" and np.isinf(known).any():
        raise ValueError("Input y contains infinity or a value too large for dtype('float64').")
    check_classification_targets(known)
    classes, positions = np.unique(known, return_inverse=True)
    if len(classes) < 2:
        only = f"only one class: {classes[0]!r}" if len(classes) else f"no labels among its {len(given)} samples"
        raise ValueError(f"ProtoConClassifier needs samples of at least 2 classes in the data, but y has {only}.")
    codes = np.full(len(given), UNKNOWN, dtype=np.int64)
    codes[~unknown] = positions
    return Labels(classes, codes)


def as_array(y: Any) -> np.ndarray:
    """Labels as an array; a mixed list of text and other values keeps both, where NumPy would make all of it text."""
    if isinstance(y, list | tuple) and {isinstance(value, str) for value in y} == {True, False}:
        return np.array(y, dtype=object)
    return np.asarray(y)


def unlabelled(y: np.ndarray) -> np.ndarray:
    """Which samples have no label, bool (n,): −1, None, NaN, and in arrays of text also '', '-1' and 'nan'.

    The last two because `np.array(["cat", -1])` turns numbers into text without a word.
    """
    if y.dtype.kind == "f":
        return np.asarray(np.isnan(y) | (y == UNKNOWN))
    if y.dtype.kind in "iu":
        return np.asarray(y == UNKNOWN)
    if y.dtype.kind == "U":
        return np.isin(y, _NO_TEXT)
    if y.dtype.kind == "O":
        return np.fromiter((_is_missing(value) for value in y), dtype=bool, count=len(y))
    return np.zeros(len(y), dtype=bool)


def _is_missing(value: Any) -> bool:
    if value is None or type(value).__name__ == "NAType":  # pandas.NA, which answers no comparison
        return True
    if isinstance(value, str):
        return value in _NO_TEXT
    return bool(value != value or value == UNKNOWN)  # NaN is not itself


def _one_type(known: np.ndarray) -> np.ndarray:
    """Labels of an array of objects as numbers where they are numbers."""
    if known.dtype.kind != "O" or not len(known):
        return known
    kinds = {isinstance(value, str) for value in known}
    if kinds == {True, False}:
        raise ValueError("y has labels of text and of numbers; expected one kind, and −1 or None for unlabelled.")
    if kinds == {True}:
        return known
    converted = np.array(known.tolist())
    if converted.dtype.kind not in "biuf" or converted.ndim != 1:
        raise ValueError(f"y has labels such as {known[0]!r}; expected numbers or text, −1 or None for unlabelled.")
    return converted
