"""Class frequencies from opinions and labels: the formulas, their limits, that chance is taken off; and alignment."""

import numpy as np
import pytest

from protocon.core.class_frequencies import (
    as_frequent,
    believed_frequencies,
    counted_frequencies,
    estimated_frequencies,
    numbers_chosen,
)


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


def test_shares_of_random_labels_are_believed_as_far_as_chance_does_not_explain_them() -> None:
    counts = np.array([14, 3, 2, 1])
    away = [count / 20 - 1 / 4 for count in counts]
    chance = (1 - 1 / 4) / 20
    believed = 1 - chance / sum(value * value for value in away)
    expected = [1 / 4 + believed * value for value in away]
    np.testing.assert_allclose(counted_frequencies(counts), expected, rtol=1e-12)


def test_what_chance_explains_is_not_believed_at_all() -> None:
    np.testing.assert_allclose(counted_frequencies(np.array([6, 5, 5, 4])), 0.25)


def test_of_many_labels_the_shares_are_believed() -> None:
    found = counted_frequencies(np.array([7000, 2000, 1000]))
    np.testing.assert_allclose(found, [0.7, 0.2, 0.1], atol=1e-3)


@pytest.mark.parametrize("truth", [[0.25, 0.25, 0.25, 0.25], [0.3, 0.25, 0.25, 0.2], [0.4, 0.3, 0.2, 0.1]])
def test_pulled_shares_are_nearer_to_the_truth_than_those_of_a_few_random_labels(truth: list[float]) -> None:
    draws = np.random.default_rng(0).multinomial(16, truth, size=400)
    pulled = np.mean([np.square(counted_frequencies(counts) - truth).sum() for counts in draws])
    assert pulled < np.mean([np.square(counts / 16 - truth).sum() for counts in draws])


def test_chosen_numbers_of_labels_say_nothing_and_drawn_ones_half() -> None:
    mean, counts = np.array([0.6, 0.2, 0.2]), np.array([1, 30, 1])
    np.testing.assert_allclose(estimated_frequencies(mean, counts, chosen=True), believed_frequencies(mean))
    half = 0.5 * (mean + counted_frequencies(counts))
    np.testing.assert_allclose(estimated_frequencies(mean, counts, chosen=False), believed_frequencies(half))


@pytest.mark.parametrize("counts", [[4, 4, 4, 4], [5, 4, 4, 4], [4, 4, 4, 3], [40, 40, 39], [6, 6, 5, 7, 6], [5, 4]])
def test_numbers_that_are_nearly_equal_were_chosen(counts: list[int]) -> None:
    assert numbers_chosen(np.array(counts))


@pytest.mark.parametrize("counts", [[7, 4, 3, 2], [20, 3, 4, 5], [6, 2], [1, 0, 9]])
def test_unequal_numbers_were_not(counts: list[int]) -> None:
    assert not numbers_chosen(np.array(counts))


def test_the_limit_is_half_of_the_inequality_that_chance_makes() -> None:
    classes, labels = 10, 40
    draws = np.random.default_rng(0).multinomial(labels, np.full(classes, 1 / classes), size=2000)
    inequality = [sum((n - labels / classes) ** 2 for n in counts) / (labels / classes) for counts in draws]
    limit = 0.5 * float(np.mean(inequality))
    clear = [(counts, found) for counts, found in zip(draws, inequality, strict=True) if abs(found - limit) > 0.2]
    assert {numbers_chosen(counts) == (found < limit) for counts, found in clear} == {True}
    assert 0.05 < np.mean([numbers_chosen(counts) for counts in draws]) < 0.2


def test_aligned_opinions_class_by_class() -> None:
    draws = np.random.default_rng(0)
    logits = draws.normal(loc=(1.0, 0.0, -1.0), size=(40, 3))
    wanted, known, certain = np.array([0.2, 0.5, 0.3]), np.array([0, 5]), np.eye(3)[[2, 0]]
    odds = np.ones(3)
    for turn in range(4):
        expected = np.exp(logits) * odds
        expected /= expected.sum(axis=1, keepdims=True)
        for row, label in zip(known, certain, strict=True):
            expected[row] = label
        if turn < 3:
            odds = np.array([odds[c] * (wanted[c] + 1e-4) / (expected[:, c].mean() + 1e-4) for c in range(3)])
    np.testing.assert_allclose(as_frequent(logits, wanted, known, certain), expected, rtol=1e-6)


def test_aligned_opinions_are_nearly_as_frequent_as_they_should_be() -> None:
    logits = np.random.default_rng(1).normal(loc=(2.0, 0.0, 0.0, 0.0), size=(300, 4))
    wanted = np.array([0.1, 0.2, 0.3, 0.4])
    nothing = np.zeros(0, dtype=np.int64)
    found = as_frequent(logits, wanted, nothing, np.zeros((0, 4)))
    before = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    assert distance(before.mean(0), wanted) > 0.4
    assert distance(found.mean(0), wanted) < 0.02
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-5)


def test_classes_that_should_not_be_there_leave_finite_opinions() -> None:
    found = as_frequent(np.full((5, 3), -80.0), np.array([1.0, 0.0, 0.0]), np.array([4]), np.eye(3)[[2]])
    assert np.isfinite(found).all()
    assert (found[:4].argmax(1) == 0).all()
    assert found[4].tolist() == [0.0, 0.0, 1.0]
