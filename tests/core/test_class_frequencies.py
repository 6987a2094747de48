"""Class frequencies from a mean opinion: the formula, its limits, and that chance is taken off."""

import numpy as np
import pytest

from protocon.core.class_frequencies import believed_frequencies


def distance(one: np.ndarray, other: np.ndarray) -> float:
    return 0.5 * float(np.abs(one - other).sum())


@pytest.mark.parametrize("mean", [[0.5, 0.3, 0.2], [0.35, 0.33, 0.32], [0.9, 0.1, 0.0]])
def test_the_formula_class_by_class(mean: list[float]) -> None:
    away = sum(abs(value - 1 / 3) for value in mean) / 2
    power = 1.1 / (1 + np.exp(-(away - 0.15) / 0.03))
    odds = [max(3 * value, 1e-6) ** power for value in mean]
    expected = [value / sum(odds) for value in odds]
    np.testing.assert_allclose(believed_frequencies(np.array(mean)), expected, rtol=1e-9)


def test_uniform_stays_uniform() -> None:
    np.testing.assert_allclose(believed_frequencies(np.full(5, 0.2)), 0.2)


def test_what_chance_may_have_done_is_pulled_to_uniform() -> None:
    mean, uniform = np.array([0.28, 0.26, 0.24, 0.22]), np.full(4, 0.25)
    assert distance(believed_frequencies(mean), uniform) < 0.3 * distance(mean, uniform)


def test_a_clear_difference_grows_a_little() -> None:
    found = believed_frequencies(np.array([0.7, 0.1, 0.1, 0.1]))
    assert 0.71 < found[0] < 0.76
    np.testing.assert_allclose(found[1:], (1 - found[0]) / 3)


def test_the_order_of_the_classes_stays() -> None:
    mean = np.array([0.4, 0.25, 0.2, 0.15])
    assert (np.argsort(believed_frequencies(mean)) == np.argsort(mean)).all()


def test_a_class_that_nobody_sees_leaves_finite_frequencies() -> None:
    found = believed_frequencies(np.array([1.0, 0.0]))
    assert np.isfinite(found).all()
    assert found.sum() == pytest.approx(1.0)


def test_of_equally_frequent_classes_the_estimate_is_nearer_to_the_truth_than_the_mean_of_few_opinions() -> None:
    draws = np.random.default_rng(0)
    truth = np.full(10, 0.1)
    means = [draws.dirichlet(400 * truth) for _ in range(50)]
    assert np.mean([distance(believed_frequencies(m), truth) for m in means]) < 0.5 * np.mean(
        [distance(m, truth) for m in means]
    )
