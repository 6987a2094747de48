"""The fast model: probabilities that follow the labels, the same every time."""

import numpy as np
import pytest

from protocon.errors import DataError
from protocon.picking.fast_model import FastModel
from tests.picking.blobs import blobs


def some_labels(groups: np.ndarray, per_group: int) -> np.ndarray:
    labels = np.full(len(groups), -1)
    for group in np.unique(groups):
        labels[np.flatnonzero(groups == group)[:per_group]] = group
    return labels


def test_a_label_per_group_labels_them_all_and_finds_their_frequencies() -> None:
    features, groups = blobs((120, 60, 20), spread=0.4)
    found = FastModel(features).predict(some_labels(groups, 1))
    assert (found.probs.argmax(axis=1) == groups).mean() > 0.98
    assert np.abs(found.prior - np.array([0.6, 0.3, 0.1])).sum() < 0.1
    np.testing.assert_allclose(found.probs.sum(axis=1), 1, atol=1e-5)
    np.testing.assert_allclose(found.prior.sum(), 1, atol=1e-6)


def test_unlabelled_images_help() -> None:
    """Two labels per group, groups that overlap: better than logistic regression on the labels alone."""
    features, groups = blobs((150, 150, 150, 150), spread=1.4, dimensions=12)
    model, gain = FastModel(features), []
    for draw in range(5):
        generator = np.random.default_rng(draw)
        labels = np.full(len(groups), -1)
        for group in range(4):
            labels[generator.permutation(np.flatnonzero(groups == group))[:2]] = group
        found = model.predict(labels)
        gain.append((found.probs.argmax(1) == groups).mean() - (found.linear.argmax(1) == groups).mean())
    assert np.mean(gain) > 0.02


def test_nobody_is_wholly_sure_of_an_image_without_a_label() -> None:
    features, groups = blobs((80, 60, 40), spread=0.6)
    labels = np.full(len(groups), -1)
    labels[[int(np.flatnonzero(groups == group)[0]) for group in range(3)]] = range(3)
    probs = FastModel(features).predict(labels).probs
    assert (probs[labels >= 0].max(axis=1) == 1).all()
    assert probs[labels < 0].max() < 0.999
    np.testing.assert_allclose(probs.sum(axis=1), 1, rtol=1e-5)


def test_labels_stay_and_repetition_changes_no_bit() -> None:
    features, groups = blobs((40, 40), spread=2.0)
    labels = some_labels(groups, 3)
    first, second = (FastModel(features).predict(labels) for _ in range(2))
    assert (first.probs[labels >= 0].argmax(axis=1) == labels[labels >= 0]).all()
    assert first.probs.tobytes() == second.probs.tobytes()


def test_a_class_without_labels_has_probability_zero_and_one_class_alone_has_all() -> None:
    features, groups = blobs((20, 20))
    found = FastModel(features).predict(some_labels(groups * 2, 2), classes=4)
    assert found.probs.shape == (40, 4)
    assert found.probs[:, [1, 3]].max() == 0
    only = FastModel(features).predict(np.where(groups == 0, -1, 1), classes=3)
    assert (only.probs == [0, 1, 0]).all()


def test_a_given_prior_decides_where_features_do_not() -> None:
    features = np.ones((50, 4), dtype=np.float32)
    labels = np.full(50, -1)
    labels[:2] = (0, 1)
    found = FastModel(features).predict(labels, prior=np.array([0.9, 0.1]))
    assert (found.probs[2:, 0] > 0.8).all()
    np.testing.assert_allclose(found.prior, [0.9, 0.1])


def test_other_images_are_labelled_by_the_same_model() -> None:
    features, groups = blobs((80, 40, 30), spread=0.4)
    labels = some_labels(groups, 2)[:100]
    probs = FastModel(features[:100]).predict_others(features[100:], labels)
    assert (probs.argmax(axis=1) == groups[100:]).mean() > 0.95


def test_without_labels_or_with_too_many_it_says_so() -> None:
    features, groups = blobs((5, 5))
    model = FastModel(features)
    with pytest.raises(DataError, match="label at least one"):
        model.predict(np.full(10, -1))
    with pytest.raises(DataError, match="one per image"):
        model.predict(groups[:3])


def test_one_image_alone() -> None:
    found = FastModel(np.ones((1, 3))).predict(np.array([0]))
    assert found.probs.tolist() == [[1.0]]
