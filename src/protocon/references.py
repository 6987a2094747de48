"""REFERENCES: classifiers without a neural network, which users try first. A new one is one function and one line.

They see what a run sees: the same labelled, unlabelled and test images, as rows of pixels in [0, 1], or as
embeddings (of a frozen encoder, where networks learn from one) with mean 0 and standard deviation 1 in each feature.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from protocon.errors import DataError

if TYPE_CHECKING:
    from protocon.data.imageset import DataBundle, ImageSet
    from protocon.data.labels.label_split import Split

_NEIGHBOURS = 7
_INVERSE_PENALTY = 10.0
"""scikit-learn's C: on digits better than its default of 1, most of all in self-training: a strong reference."""


@dataclass(frozen=True)
class Task:
    """What a reference learns from, and what it must label."""

    labelled: np.ndarray
    """float32 (n, D)."""
    labels: np.ndarray
    """Their classes, int64 (n,)."""
    unlabelled: np.ndarray
    """float32 (m, D); none of them is among the labelled."""
    test: np.ndarray
    """float32 (t, D)."""

    @property
    def everything(self) -> tuple[np.ndarray, np.ndarray]:
        """Labelled and unlabelled rows, and their classes with −1 for unknown, as scikit-learn wants them."""
        unknown = np.full(len(self.unlabelled), -1, dtype=np.int64)
        return np.concatenate([self.labelled, self.unlabelled]), np.concatenate([self.labels, unknown])


Reference = Callable[[Task], np.ndarray]
"""Classes of the test rows, int64 (t,)."""


def logistic_regression(task: Task) -> np.ndarray:
    """A linear classifier of the labelled rows alone."""
    return _classes(_linear().fit(task.labelled, task.labels).predict(task.test))


def label_spreading(task: Task) -> np.ndarray:
    """Labels spread along the graph of 7 nearest neighbours (Zhou et al., 2004).

    A test row none of whose neighbours was reached by a label has no probabilities; scikit-learn gives it
    the first class.
    """
    from sklearn.semi_supervised import LabelSpreading

    rows, labels = task.everything
    model = LabelSpreading(kernel="knn", n_neighbors=min(_NEIGHBOURS, len(rows)))
    with np.errstate(invalid="ignore"):
        return _classes(model.fit(rows, labels).predict(task.test))


def self_training(task: Task) -> np.ndarray:
    """Logistic regression that adds its predictions above 0.75 to the labels, until none is left (Yarowsky, 1995)."""
    from sklearn.semi_supervised import SelfTrainingClassifier

    rows, labels = task.everything
    model = SelfTrainingClassifier(_linear(), threshold=0.75, max_iter=None)
    return _classes(model.fit(rows, labels).predict(task.test))


REFERENCES: dict[str, Reference] = {
    "logistic-regression": logistic_regression,
    "label-spreading": label_spreading,
    "self-training": self_training,
}


def reference_accuracy(name: str, bundle: "DataBundle", split: "Split") -> dict[str, float]:
    """Accuracy of a reference on the test images with a known class, named as in the result of a run.

    `test_accuracy` is the share that is labelled correctly, `test_macro_accuracy` the mean of that share over classes.

    Args:
        name: of REFERENCES.
        bundle: training and test images.
        split: which training images are labelled.
    """
    if bundle.test is None:
        raise DataError(f"{bundle.train.name} has no test set, so {name} cannot be measured; set data.test_fraction")
    known = np.flatnonzero(bundle.test.labels >= 0)
    predicted = REFERENCES[name](_task(bundle.train, bundle.test.subset(known), split))
    truth = bundle.test.labels[known]
    right = predicted == truth
    classes = [float(right[truth == label].mean()) for label in np.unique(truth)]
    return {"test_accuracy": float(right.mean()), "test_macro_accuracy": float(np.mean(classes))}


def _task(train: "ImageSet", test: "ImageSet", split: "Split") -> Task:
    unlabelled = np.setdiff1d(split.unlabelled, split.labelled)
    labelled, rest, held_out = (
        _rows(images, index)
        for images, index in ((train, split.labelled), (train, unlabelled), (test, np.arange(len(test))))
    )
    if len(train.shape) == 1:
        seen = np.concatenate([labelled, rest])
        mean, std = seen.mean(0), np.maximum(seen.std(0), 1e-6)
        labelled, rest, held_out = ((part - mean) / std for part in (labelled, rest, held_out))
    return Task(labelled, split.labels, rest, held_out)


def _rows(images: "ImageSet", index: np.ndarray) -> np.ndarray:
    """One row per sample: embeddings as they are, pixels scaled to [0, 1]."""
    values = images.read(index).numpy().reshape(len(index), -1)
    scaled: np.ndarray = values / np.float32(255) if len(images.shape) == 3 else values
    return scaled.astype(np.float32, copy=False)


def _linear() -> Any:
    from sklearn.linear_model import LogisticRegression  # imported here: it takes a second, and few commands need it

    return LogisticRegression(C=_INVERSE_PENALTY, max_iter=2000)


def _classes(predicted: Any) -> np.ndarray:
    return np.asarray(predicted, dtype=np.int64)
