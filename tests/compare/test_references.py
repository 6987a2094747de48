"""References learn from what a run learns from, and nothing else."""

import numpy as np
import pytest

from protocon import references
from protocon.data.imageset import DataBundle, DataHints, FeatureArray
from protocon.data.labels.label_split import make_split
from protocon.data.source_options import SourceOptions
from protocon.data.sources.digits import digits
from protocon.errors import DataError
from protocon.references import REFERENCES, Task, reference_accuracy


def blobs(*, scale: float = 1.0, test_labels: np.ndarray | None = None) -> DataBundle:
    """Two classes, each a stretched cloud: one label of each sits at its end, so that neighbours must help."""
    steps = np.linspace(0, 1, 60)
    parts = [np.stack([steps * 40, np.full(60, height) + 0.3 * np.sin(50 * steps)], axis=1) for height in (0.0, 4.0)]
    features = np.concatenate(parts).astype(np.float32) * np.float32(scale)
    labels = np.repeat([0, 1], 60)
    train = FeatureArray(features, labels, ("low", "high"))
    test = FeatureArray(features, labels if test_labels is None else test_labels, ("low", "high"))
    return DataBundle(train, test, DataHints(flip=False))


@pytest.mark.parametrize(
    ("name", "least"), [("logistic-regression", 0.7), ("label-spreading", 0.8), ("self-training", 0.7)]
)
def test_digits_are_learned(name: str, least: float) -> None:
    bundle = digits(SourceOptions())
    assert reference_accuracy(name, bundle, make_split(bundle.train, per_class=2))["test_accuracy"] >= least


@pytest.mark.parametrize("name", REFERENCES)
def test_the_scale_of_embeddings_does_not_matter(name: str) -> None:
    small, large = (blobs(scale=scale) for scale in (1.0, 1000.0))
    accuracies = [reference_accuracy(name, bundle, make_split(bundle.train, per_class=2)) for bundle in (small, large)]
    assert accuracies[0] == accuracies[1]


@pytest.mark.parametrize("name", ["label-spreading", "self-training"])
def test_unlabelled_rows_are_used(name: str) -> None:
    bundle = digits(SourceOptions())
    task = references._task(bundle.train, bundle.train, make_split(bundle.train, per_class=2))
    few = Task(task.labelled, task.labels, task.unlabelled[:10], task.test)
    right = [(REFERENCES[name](given) == bundle.train.labels).mean() for given in (few, task)]
    assert right[1] > right[0] + 0.02


def test_logistic_regression_takes_labels_alone() -> None:
    bundle = blobs()
    task = references._task(bundle.train, bundle.train, make_split(bundle.train, per_class=2))
    alone = Task(task.labelled, task.labels, task.unlabelled[:0], task.test)
    assert np.array_equal(REFERENCES["logistic-regression"](task), REFERENCES["logistic-regression"](alone))


def test_held_out_classes_are_never_seen_and_no_row_comes_twice() -> None:
    bundle = blobs()
    split = make_split(bundle.train, per_class=2, include_labelled=True)
    task = references._task(bundle.train, bundle.train, split)
    rows, labels = task.everything
    assert len(rows) == 120
    assert (labels >= 0).sum() == 4
    assert np.array_equal(labels[:4], split.labels)


def test_pixels_lie_between_0_and_1() -> None:
    bundle = digits(SourceOptions())
    task = references._task(bundle.train, bundle.train, make_split(bundle.train, per_class=2))
    assert task.unlabelled.dtype == np.float32
    assert (task.unlabelled.min(), task.unlabelled.max()) == (0.0, 1.0)
    assert task.unlabelled.shape == (1377, 64)


def test_test_images_of_unknown_class_do_not_count() -> None:
    labels = np.repeat([0, 1], 60)
    whole = blobs()
    split = make_split(whole.train, per_class=30)
    known = np.where(np.arange(120) < 30, labels, -1)
    perfect = {"test_accuracy": 1.0, "test_macro_accuracy": 1.0}
    assert reference_accuracy("label-spreading", whole, split) == perfect
    assert reference_accuracy("label-spreading", blobs(test_labels=known), split) == perfect


def test_macro_accuracy_counts_every_class_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """One of three classes has most of the images, and is the only one that is found."""
    labels = np.array([0] * 8 + [1, 2])
    data = FeatureArray(np.arange(20, dtype=np.float32).reshape(10, 2), labels, ("a", "b", "c"))
    monkeypatch.setitem(REFERENCES, "always-a", lambda task: np.zeros(len(task.test), dtype=np.int64))
    measured = reference_accuracy(
        "always-a", DataBundle(data, data, DataHints(flip=False)), make_split(data, per_class=1)
    )
    assert measured == pytest.approx({"test_accuracy": 0.8, "test_macro_accuracy": 1 / 3})


def test_no_test_set_is_an_error() -> None:
    bundle = blobs()
    with pytest.raises(DataError, match="no test set"):
        reference_accuracy(
            "self-training", DataBundle(bundle.train, None, bundle.hints), make_split(bundle.train, per_class=2)
        )
