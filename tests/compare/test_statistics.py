"""Means, sample standard deviations and paired intervals, against hand and scipy."""

import pytest
from scipy.stats import ttest_rel

from protocon.compare.statistics import Difference, SeedSpread, paired_difference, spread


def test_spread_divides_by_n_minus_one() -> None:
    values = spread([0.80, 0.86, 0.83])
    assert values.n == 3
    assert values.mean == pytest.approx(0.83)
    assert values.std == pytest.approx(0.03)


def test_one_value_has_no_spread_and_none_no_mean() -> None:
    assert spread([0.5]) == SeedSpread(1, 0.5, None)
    assert spread([]) == SeedSpread(0, None, None)


def test_interval_by_hand() -> None:
    # Differences 10, 6, 11 points: mean 9, s = √7; t(0.975; 2) = 4.302653 from any table.
    found = paired_difference({0: 0.90, 1: 0.92, 2: 0.94}, {0: 0.80, 1: 0.86, 2: 0.83})
    half = 4.302653 * 7**0.5 / 3**0.5 / 100
    assert found.mean == pytest.approx(0.09)
    assert found.low == pytest.approx(0.09 - half, abs=1e-7)
    assert found.high == pytest.approx(0.09 + half, abs=1e-7)


def test_interval_is_that_of_the_paired_t_test() -> None:
    ours, theirs = [0.91, 0.85, 0.97, 0.88, 0.90], [0.84, 0.86, 0.90, 0.80, 0.89]
    found = paired_difference(dict(enumerate(ours)), dict(enumerate(theirs)))
    interval = ttest_rel(ours, theirs).confidence_interval(0.95)
    assert found.low == pytest.approx(interval.low)
    assert found.high == pytest.approx(interval.high)


def test_only_seeds_that_both_have_are_paired() -> None:
    found = paired_difference({0: 0.9, 1: 0.5, 3: 0.8}, {0: 0.7, 2: 0.1, 3: 0.6})
    assert found.n == 2
    assert found.mean == pytest.approx(0.2)
    assert paired_difference({0: 0.9}, {0: 0.6, 1: 0.6}) == Difference(1, 0.9 - 0.6, None, None)
    assert paired_difference({0: 0.9}, {1: 0.7}) == Difference(0, None, None, None)
