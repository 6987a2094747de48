"""The threshold gives way exactly as far as a share of samples needs, and comes back."""

import numpy as np
import pytest
import torch
from torch import Tensor

from protocon.core.retention import RetentionThreshold, retaining_threshold

TAU = 0.95


def confidences(low: float, high: float, seed: int = 0, rows: int = 5000) -> Tensor:
    return torch.as_tensor(np.random.default_rng(seed).uniform(low, high, rows), dtype=torch.float32)


def after_epoch(threshold: RetentionThreshold, *batches: Tensor) -> float:
    for batch in batches:
        threshold.update(batch)
    return threshold.end_epoch()["threshold"]


@pytest.mark.parametrize("retention", [0.05, 0.3, 0.9])
def test_the_share_that_was_asked_for_passes_a_flat_softmax(retention: float) -> None:
    flat = confidences(0.2, 0.6)
    threshold = RetentionThreshold(TAU, retention=retention)
    assert not threshold.reliable(flat).any()  # what a fixed threshold would go on saying
    level = after_epoch(threshold, flat)
    assert abs(level - float(np.quantile(flat.numpy(), 1 - retention))) < 0.002
    passed = float(threshold.reliable(flat).float().mean())
    assert retention <= passed < retention + 0.01


def test_the_equation_by_hand() -> None:
    counts = torch.tensor([0, 4, 3, 2, 1])  # of ten, 1 in [0.8, 1], 3 in [0.6, 1], 6 in [0.4, 1]
    for retention, expected in ((0.1, 0.8), (0.2, 0.6), (0.3, 0.6), (0.31, 0.4), (0.9, 0.2)):
        assert retaining_threshold(counts, threshold=TAU, retention=retention) == pytest.approx(expected)
    assert retaining_threshold(counts, threshold=0.5, retention=0.1) == 0.5  # never above τ
    assert retaining_threshold(counts, threshold=TAU, retention=0.0) == TAU
    assert retaining_threshold(torch.zeros(5, dtype=torch.int64), threshold=TAU, retention=0.5) == TAU


def test_it_is_tau_itself_where_enough_reach_it_and_comes_back_to_it() -> None:
    threshold = RetentionThreshold(TAU, retention=0.5)
    assert after_epoch(threshold, confidences(0.96, 1.0)) == TAU
    assert threshold.remark() is None
    assert after_epoch(threshold, confidences(0.3, 0.5)) < 0.5
    assert "lowered" in str(threshold.remark())
    assert after_epoch(threshold, confidences(0.5, 0.7)) < 0.7
    assert threshold.remark() is None  # once is enough
    assert after_epoch(threshold, confidences(0.96, 1.0)) == TAU
    assert "again" in str(threshold.remark())


def test_only_the_last_epoch_counts_and_batches_may_come_in_any_order() -> None:
    first, second = confidences(0.2, 0.6, 1), confidences(0.3, 0.9, 2)
    one, other = RetentionThreshold(TAU, retention=0.3), RetentionThreshold(TAU, retention=0.3)
    after_epoch(one, confidences(0.0, 0.1))
    assert after_epoch(one, first, second) == after_epoch(other, second, first)


def test_without_a_share_nothing_is_counted_logged_or_changed() -> None:
    threshold = RetentionThreshold(TAU, retention=0.0)
    threshold.update(confidences(0.2, 0.4))
    assert threshold.end_epoch() == {}
    assert threshold.remark() is None
    edge = torch.tensor([0.95, 0.9499999])
    assert torch.equal(threshold.reliable(edge), edge >= TAU)
    assert not threshold.counts.any()


def test_a_saved_state_goes_on_in_the_middle_of_an_epoch() -> None:
    whole, stopped = RetentionThreshold(TAU, retention=0.3), RetentionThreshold(TAU, retention=0.3)
    for threshold in (whole, stopped):
        after_epoch(threshold, confidences(0.2, 0.6))
        threshold.update(confidences(0.3, 0.5, 1))
    resumed = RetentionThreshold(TAU, retention=0.3)
    resumed.load_state_dict(stopped.state_dict())
    rest = confidences(0.4, 0.8, 2)
    assert torch.equal(resumed.reliable(rest), whole.reliable(rest))
    assert after_epoch(resumed, rest) == after_epoch(whole, rest)
    assert resumed.remark() == whole.remark()
