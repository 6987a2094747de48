"""Distribution alignment (footnote at Eq. 9) against the reference."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from protocon.core.alignment import DistributionAlignment, align
from tests import reference
from tests.core.inputs import (
    distributions,
    floats,
    numpy64,
    precisions,
    quick,
    same_state,
    seeds,
    snapshot,
    tolerance,
)


@quick
@given(seed=seeds, rows=st.integers(1, 6), classes=st.integers(1, 6), given_prior=st.booleans(), dtype=precisions)
def test_align_matches_reference(seed: int, rows: int, classes: int, given_prior: bool, dtype: torch.dtype) -> None:
    rng = np.random.default_rng(seed)
    probs = distributions(rng, rows, classes)
    marginal = 0.9 * distributions(rng, 1, classes)[0] + 0.1 / classes
    prior = distributions(rng, 1, classes)[0] if given_prior else None
    got = align(floats(probs, dtype), floats(marginal, dtype), None if prior is None else floats(prior, dtype))
    np.testing.assert_allclose(numpy64(got), reference.align(probs, marginal, prior), atol=10 * tolerance(dtype))
    np.testing.assert_allclose(numpy64(got.sum(dim=1)), 1.0, atol=1e-5)


def test_align_worked_by_hand() -> None:
    probs, marginal = torch.tensor([[0.6, 0.4]]), torch.tensor([0.75, 0.25])
    # 0.6/0.75 : 0.4/0.25 = 0.8 : 1.6; the prior 0.9 : 0.1 makes that 0.72 : 0.16.
    torch.testing.assert_close(align(probs, marginal), torch.tensor([[1 / 3, 2 / 3]]))
    prior = torch.tensor([0.9, 0.1])
    torch.testing.assert_close(align(probs, marginal, prior), torch.tensor([[0.72 / 0.88, 0.16 / 0.88]]))


def test_a_class_that_is_never_predicted_makes_no_nan() -> None:
    got = align(torch.tensor([[1.0, 0.0], [1.0, 0.0]]), torch.tensor([1.0, 0.0]))
    torch.testing.assert_close(got, torch.tensor([[1.0, 0.0], [1.0, 0.0]]))


def batches(seed: int, count: int, rows: int, classes: int) -> list[reference.Floats]:
    rng = np.random.default_rng(seed)
    return [distributions(rng, rows, classes) for _ in range(count)]


@quick
@given(
    seed=seeds,
    count=st.integers(0, 9),
    rows=st.integers(1, 5),
    classes=st.integers(1, 5),
    window=st.integers(1, 5),
)
def test_window_is_the_mean_of_the_last_batches(seed: int, count: int, rows: int, classes: int, window: int) -> None:
    ours = DistributionAlignment(classes, window=window)
    means = []
    for probs in batches(seed, count, rows, classes):
        ours.update(floats(probs))
        means.append(probs.mean(axis=0))
    want = reference.window_marginal(means, classes=classes, window=window)
    np.testing.assert_allclose(numpy64(ours.marginal()), want, atol=1e-5)
    probs = batches(seed + 1, 1, 4, classes)[0]
    np.testing.assert_allclose(numpy64(ours(floats(probs))), reference.align(probs, want), atol=1e-3)


@quick
@given(
    seed=seeds,
    count=st.integers(0, 6),
    classes=st.integers(1, 5),
    momentum=st.sampled_from([0.0, 0.9, 0.999]),
)
def test_momentum_is_a_running_mean(seed: int, count: int, classes: int, momentum: float) -> None:
    ours = DistributionAlignment(classes, momentum=momentum)
    means = []
    for probs in batches(seed, count, 4, classes):
        ours.update(floats(probs))
        means.append(probs.mean(axis=0))
    want = reference.momentum_marginal(means, classes=classes, momentum=momentum)
    np.testing.assert_allclose(numpy64(ours.marginal()), want, atol=1e-5)


def test_before_the_first_batch_nothing_changes() -> None:
    probs = floats(distributions(np.random.default_rng(0), 5, 4))
    for ours in (DistributionAlignment(4), DistributionAlignment(4, momentum=0.9)):
        torch.testing.assert_close(ours.marginal(), torch.full((4,), 0.25))
        torch.testing.assert_close(ours(probs), probs)
        ours.update(probs)
        assert not torch.allclose(ours(probs), probs)


def test_alignment_flattens_a_skewed_marginal_and_the_prior_tilts_it_back() -> None:
    rng = np.random.default_rng(1)
    probs = floats(as_skewed(rng))
    skew = probs.mean(dim=0)
    uniform = torch.full((4,), 0.25)
    flat, tilted = DistributionAlignment(4), DistributionAlignment(4, prior=skew)
    for ours in (flat, tilted):
        ours.update(probs)
    before = (skew - uniform).abs().sum()
    assert before > 0.5
    assert (flat(probs).mean(dim=0) - uniform).abs().sum() < 0.5 * before
    # The prior of the very marginal undoes the division.
    torch.testing.assert_close(tilted(probs), probs, atol=1e-5, rtol=0)


def as_skewed(rng: np.random.Generator) -> reference.Floats:
    return np.asarray(rng.dirichlet([6.0, 2.0, 1.0, 1.0], size=400))


def test_calling_changes_nothing() -> None:
    for ours in (DistributionAlignment(3, window=2), DistributionAlignment(3, momentum=0.9)):
        probs = floats(distributions(np.random.default_rng(2), 5, 3))
        ours.update(probs)
        before = snapshot(ours)
        ours(probs)
        ours.marginal()
        assert same_state(before, snapshot(ours))
