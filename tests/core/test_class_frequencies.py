"""Class frequencies from a mean opinion and held-out labels: the formula, its limits, and that it is nearer."""

import numpy as np
import pytest

from protocon.core.class_frequencies import spread_frequencies


def labels_right(share: float, count: int = 40) -> np.ndarray:
    return np.arange(count) < round(share * count)


def distance(one: np.ndarray, other: np.ndarray) -> float:
    return 0.5 * float(np.abs(one - other).sum())


@pytest.mark.parametrize("share", [0.1, 0.5, 1.0])
@pytest.mark.parametrize("mean", [[0.5, 0.3, 0.2], [0.35, 0.33, 0.32], [0.9, 0.1, 0.0]])
def test_the_formula_class_by_class(mean: list[float], share: float) -> None:
    right = labels_right(share)
    away = sum(abs(value - 1 / 3) for value in mean) / 2
    accuracy = (sum(right.tolist()) + 1) / (len(right) + 2)
    power = min(3.0, 0.8 / accuracy) / (1 + np.exp(-(away - 0.15) / 0.05))
    odds = [max(3 * value, 1e-6) ** power for value in mean]
    expected = [value / sum(odds) for value in odds]
    np.testing.assert_allclose(spread_frequencies(np.array(mean), right), expected, rtol=1e-9)


def test_uniform_stays_uniform_whatever_the_labels_say() -> None:
    for share in (0.1, 1.0):
        np.testing.assert_allclose(spread_frequencies(np.full(5, 0.2), labels_right(share)), 0.2)


def test_what_chance_may_have_done_is_pulled_to_uniform() -> None:
    mean, uniform = np.array([0.28, 0.26, 0.24, 0.22]), np.full(4, 0.25)
    assert distance(spread_frequencies(mean, labels_right(0.8)), uniform) < 0.3 * distance(mean, uniform)


def test_the_oftener_labels_are_missed_the_farther_from_uniform_a_clear_difference_is() -> None:
    mean = np.array([0.5, 0.2, 0.15, 0.15])
    found = [spread_frequencies(mean, labels_right(share)) for share in (0.9, 0.6, 0.3)]
    largest = [float(one[0]) for one in found]
    assert largest == sorted(largest)
    assert largest[-1] > 0.7
    assert all((np.argsort(one) == np.argsort(mean)).all() for one in found)


def test_without_held_out_labels_only_chance_is_taken_off() -> None:
    mean = np.array([0.7, 0.1, 0.1, 0.1])
    np.testing.assert_allclose(spread_frequencies(mean, np.zeros(0, dtype=bool)), mean, atol=2e-3)


def test_a_class_that_nobody_sees_leaves_finite_frequencies() -> None:
    found = spread_frequencies(np.array([1.0, 0.0]), labels_right(0.5))
    assert np.isfinite(found).all()
    assert found.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("common", [0.7, 0.85])  # far enough from uniform to be seen through the errors
def test_a_model_that_errs_evenly_hides_a_common_class_and_the_estimate_is_nearer(common: float) -> None:
    truth = np.array([common, *[(1 - common) / 6] * 6])
    accuracy = 0.5
    confusion = np.full((7, 7), (1 - accuracy) / 6)
    np.fill_diagonal(confusion, accuracy)
    mean = truth @ confusion
    found = spread_frequencies(mean, labels_right(accuracy))
    assert distance(found, truth) < 0.7 * distance(mean, truth)
