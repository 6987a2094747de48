"""The linear classifier of soft labels, against scikit-learn's and against its own optimality."""

import numpy as np
from sklearn.linear_model import LogisticRegression

from protocon.core.softmax_regression import softmax, softmax_regression


def blobs(count: int = 90, classes: int = 3, width: int = 5) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(0)
    labels = np.arange(count) % classes
    centres = 1.5 * generator.normal(size=(classes, width))
    return (centres[labels] + generator.normal(size=(count, width))).astype(np.float32), labels


def test_hard_labels_give_scikit_learns_logistic_regression() -> None:
    rows, labels = blobs()
    found = softmax_regression(rows, np.eye(3)[labels], penalty=1 / (0.5 * len(rows)), steps=500)
    expected = LogisticRegression(C=0.5, tol=1e-8, max_iter=5000).fit(rows, labels).predict_proba(rows)
    np.testing.assert_allclose(softmax(found.logits(rows)), expected, atol=2e-3)


def test_soft_labels_are_matched_on_average_for_every_class() -> None:
    """The bias has no penalty, so the mean prediction of each class is its mean target."""
    rows, labels = blobs()
    targets = 0.7 * np.eye(3)[labels] + 0.3 * np.array([0.6, 0.3, 0.1])
    found = softmax_regression(rows, targets, penalty=0.01, steps=500)
    np.testing.assert_allclose(softmax(found.logits(rows)).mean(0), targets.mean(0), atol=1e-3)


def test_a_large_penalty_leaves_the_class_frequencies_alone() -> None:
    rows, labels = blobs()
    targets = np.eye(3)[np.where(labels == 2, 0, labels)]
    found = softmax_regression(rows, targets, penalty=1e6, steps=500)
    np.testing.assert_allclose(softmax(found.logits(rows)), np.tile(targets.mean(0), (len(rows), 1)), atol=1e-3)


def test_the_same_rows_give_the_same_bits() -> None:
    rows, labels = blobs()
    one, other = (softmax_regression(rows, np.eye(3)[labels], penalty=0.01) for _ in range(2))
    assert np.array_equal(one.weights, other.weights)


def test_a_weight_counts_like_a_repetition() -> None:
    rows, labels = blobs()
    targets, times = np.eye(3)[labels], 1 + np.arange(len(labels)) % 4
    repeated = softmax_regression(np.repeat(rows, times, 0), np.repeat(targets, times, 0), penalty=0.01, steps=500)
    weighted = softmax_regression(rows, targets, penalty=0.01, steps=500, weights=times.astype(np.float64))
    np.testing.assert_allclose(weighted.logits(rows), repeated.logits(rows), atol=2e-2)
