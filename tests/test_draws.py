"""Draws that are functions of keys: uniform, independent, the same everywhere."""

import itertools

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from protocon.base import draws

quick = settings(deadline=None, derandomize=True, max_examples=30)
int64s = st.integers(-(2**63), 2**63 - 1)
MANY = 1 << 16

Counts = npt.NDArray[np.int64]


def neighbours(count: int = MANY, start: int = 0) -> Tensor:
    """Consecutive keys: the hardest case for a hash, and the usual one (sample numbers)."""
    return torch.arange(start, start + count)


def is_uniform(counts: Counts) -> bool:
    """Chi-square near its mean: neither uneven nor suspiciously even (its lower tail is the thinner one)."""
    expected = float(counts.sum()) / counts.size
    statistic = float(((counts - expected) ** 2).sum()) / expected
    freedom = counts.size - 1
    deviations = (statistic - freedom) / (2 * freedom) ** 0.5
    return bool(-4.5 < deviations < 6)


def bins(values: Tensor, count: int) -> Counts:
    """How many of the values in [0, 1) fall into each of equal bins."""
    return torch.bincount((values.double() * count).long().flatten(), minlength=count).numpy()


def joint_bins(first: Tensor, second: Tensor, side: int = 16) -> Counts:
    """The same in the unit square."""
    cells = (first.double() * side).long() * side + (second.double() * side).long()
    return torch.bincount(cells.flatten(), minlength=side * side).numpy()


def test_the_chi_square_bound_tells_even_from_uneven() -> None:
    even = np.random.default_rng(0).multinomial(MANY, np.full(64, 1 / 64))
    assert is_uniform(even)
    assert not is_uniform(even + np.where(np.arange(64) < 4, 150, 0))
    assert not is_uniform(np.full(64, MANY // 64))


@pytest.mark.parametrize("start", [0, -5, 10**12])
@pytest.mark.parametrize("slot", [0, 1, 17])
def test_uniform_is_uniform_over_neighbouring_keys(start: int, slot: int) -> None:
    values = draws.uniform(neighbours(start=start), slot)
    assert values.dtype == torch.float32
    assert values.shape == (MANY, 1)
    assert float(values.min()) >= 0.0
    assert float(values.max()) < 1.0
    assert is_uniform(bins(values, 64))


def test_uniform_is_uniform_over_the_columns_of_one_key() -> None:
    values = draws.uniform(torch.tensor([3]), 0, MANY)
    assert values.shape == (1, MANY)
    assert is_uniform(bins(values, 64))


def test_every_bit_of_a_uniform_is_fair() -> None:
    bits = (draws.uniform(neighbours(), 2)[:, 0].double() * 2**24).long()
    for place in range(24):
        ones = int(((bits >> place) & 1).sum())
        assert abs(ones - MANY / 2) < 6 * (MANY / 4) ** 0.5


@pytest.mark.parametrize("pair", ["slots", "columns", "neighbouring keys", "distant keys", "epochs", "samples"])
def test_draws_for_different_purposes_are_independent(pair: str) -> None:
    keys = neighbours()
    both = draws.uniform(keys, 0, 2)
    first, second = {
        "slots": (draws.uniform(keys, 0), draws.uniform(keys, 1)),
        "columns": (both[:, 0], both[:, 1]),
        "neighbouring keys": (draws.uniform(keys, 0), draws.uniform(keys + 1, 0)),
        "distant keys": (draws.uniform(keys, 0), draws.uniform(keys + (1 << 32), 0)),
        "epochs": (draws.uniform(draws.fold(keys, 0), 0), draws.uniform(draws.fold(keys, 1), 0)),
        "samples": (
            draws.uniform(draws.fold(7, keys), 0),
            draws.uniform(draws.fold(8, keys), 0),
        ),
    }[pair]
    assert is_uniform(joint_bins(first, second))


def test_a_sample_gets_its_draw_in_any_batch_and_whatever_the_generator_did() -> None:
    keys = draws.fold(11, neighbours(50))
    for draw in (draws.uniform, draws.normal):
        whole = draw(keys, 3, 4)
        torch.manual_seed(1)
        torch.rand(5)
        order = torch.tensor([40, 3, 17])
        assert torch.equal(draw(keys[order], 3, 4), whole[order])
        assert torch.equal(draw(keys[:1], 3, 4), whole[:1])
        assert len(torch.unique(whole)) > 190


def splitmix(x: int) -> int:
    """SplitMix64's finaliser on Python's integers, from its publication."""
    mask = 2**64 - 1
    x &= mask
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & mask
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & mask
    return x ^ (x >> 31)


@quick
@given(key=int64s, number=st.one_of(st.integers(0, 1000), int64s))
def test_fold_is_two_rounds_of_splitmix64(key: int, number: int) -> None:
    golden = 0x9E3779B97F4A7C15
    want = splitmix(splitmix(key + golden) + (number + 1) * golden)
    got = draws.fold(torch.tensor(key), torch.tensor(number))
    assert int(got) % 2**64 == want
    assert torch.equal(got, draws.fold(key, number))


def test_fold_never_repeats_and_minds_the_order() -> None:
    keys = torch.cat([neighbours(256, -128), torch.tensor([2**62, -(2**62)])])
    grid = draws.fold(keys[:, None], torch.arange(256)[None, :])
    assert len(torch.unique(grid)) == grid.numel()
    assert not torch.equal(draws.fold(draws.fold(5, 1), 2), draws.fold(draws.fold(5, 2), 1))


def test_one_flipped_bit_flips_half_of_the_result() -> None:
    keys = neighbours(512)
    for place in (0, 1, 31, 62):
        other = keys ^ (1 << place)
        by_key = draws.fold(keys, 0) ^ draws.fold(other, 0)
        by_number = draws.fold(0, keys) ^ draws.fold(0, other)
        for difference in (by_key, by_number):
            flipped = sum((int(d) % 2**64).bit_count() for d in difference) / len(keys)
            assert abs(flipped - 32) < 1.5


@quick
@given(below=st.integers(1, 1000), slot=st.integers(0, 50), start=st.integers(0, 2**40))
def test_integers_stay_in_range(below: int, slot: int, start: int) -> None:
    values = draws.integers(neighbours(200, start), slot, below, 3)
    assert values.dtype == torch.int64
    assert values.shape == (200, 3)
    assert int(values.min()) >= 0
    assert int(values.max()) < below
    if below > 1:
        assert len(torch.unique(values)) > 1


@pytest.mark.parametrize("below", [2, 7, 100])
def test_integers_are_uniform(below: int) -> None:
    values = draws.integers(neighbours(), 4, below)
    assert is_uniform(torch.bincount(values.flatten(), minlength=below).numpy())


@pytest.mark.parametrize("count", [1, 2, 3])
def test_normal_has_the_moments_of_a_normal(count: int) -> None:
    values = draws.normal(neighbours(), 5, count).double()
    assert values.shape == (MANY, count)
    assert torch.isfinite(values).all()
    for column in values.T:
        # Bounds of five standard errors: σ² of x, x², x³, x⁴ is 1, 2, 15, 96.
        for power, expected, variance in ((1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96)):
            assert abs(float((column**power).mean()) - expected) < 5 * (variance / MANY) ** 0.5
    # As uniform after the normal distribution function, the columns are independent too, squares included.
    levels = torch.special.ndtr(values).clamp(max=1 - 1e-12)
    for i, j in itertools.combinations(range(count), 2):
        assert is_uniform(joint_bins(levels[:, i], levels[:, j]))


@quick
@given(size=st.integers(0, 300), numbers=st.lists(st.integers(0, 2**31), min_size=1, max_size=4))
def test_permutation_holds_every_number_once_and_repeats_itself(size: int, numbers: list[int]) -> None:
    order = draws.permutation(size, *numbers)
    assert sorted(order.tolist()) == list(range(size))
    np.testing.assert_array_equal(order, draws.permutation(size, *numbers))
    if size > 20:
        assert (order != draws.permutation(size, *[numbers[0] + 1, *numbers[1:]])).any()
        assert (order != np.arange(size)).any()


def test_permutations_are_equally_likely() -> None:
    orders = [tuple(draws.permutation(3, 1, epoch).tolist()) for epoch in range(3000)]
    counts = np.array([orders.count(o) for o in itertools.permutations(range(3))])
    assert counts.sum() == 3000
    assert is_uniform(counts)


@pytest.mark.parametrize(
    ("left", "right"),
    [((1, 2), (2, 1)), ((1,), (1, 0)), ((0,), (0, 0)), ((2**32,), (0, 1)), ((3, 0, 1), (3, 1, 0))],
)
def test_other_numbers_give_another_permutation(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    assert (draws.permutation(100, *left) != draws.permutation(100, *right)).any()


@quick
@given(int64s, int64s)
def test_single_numbers_are_folded_as_tensors_are(key: int, number: int) -> None:
    expected = draws.fold(torch.tensor([key]), torch.tensor([number]))[0]
    for one in (key, torch.tensor(key)):
        for other in (number, torch.tensor(number)):
            assert torch.equal(draws.fold(one, other), expected)
        assert torch.equal(draws.fold(one, torch.tensor([number, 3]))[0], expected)
