"""Dual alignment: the bias moves until aligned predictions have the prior's frequencies."""

import numpy as np
import pytest
import torch
from torch import Tensor

from protocon.core.alignment import DistributionAlignment, DualAlignment

CLASSES = 3


def skewed(seed: int, rows: int = 400) -> Tensor:
    """Confident predictions, 60 % of them for class 0, with some doubt towards the others."""
    rng = np.random.default_rng(seed)
    favourite = rng.choice(CLASSES, size=rows, p=[0.6, 0.2, 0.2])
    logits = rng.normal(size=(rows, CLASSES)) + 4.0 * np.eye(CLASSES)[favourite]
    return torch.as_tensor(logits, dtype=torch.float32).softmax(-1)


def settle(alignment: DualAlignment | DistributionAlignment, batches: int = 400) -> Tensor:
    """Mean aligned prediction after many batches."""
    for seed in range(batches):
        alignment.update(skewed(seed))
    mean: Tensor = alignment(skewed(10_000, rows=40_000)).mean(0)
    return mean


@pytest.mark.parametrize("prior", [None, (0.5, 0.3, 0.2), (0.1, 0.1, 0.8)])
def test_frequencies_reach_the_prior_where_the_running_mean_falls_short(prior: tuple[float, ...] | None) -> None:
    wanted = torch.full((CLASSES,), 1 / CLASSES) if prior is None else torch.tensor(prior)
    given = None if prior is None else wanted
    dual = (settle(DualAlignment(CLASSES, rate=0.5, prior=given)) - wanted).abs().max()
    mean = (settle(DistributionAlignment(CLASSES, prior=given)) - wanted).abs().max()
    assert dual < 0.03
    assert dual < 0.5 * mean


def test_one_step_is_the_dual_update_by_hand() -> None:
    alignment = DualAlignment(2, rate=0.5)
    probs = torch.tensor([[0.9, 0.1], [0.7, 0.3]])
    torch.testing.assert_close(alignment(probs), probs)
    alignment.update(probs)
    # The mean is (0.8, 0.2), the prior (0.5, 0.5).
    torch.testing.assert_close(alignment.bias, torch.tensor([-0.15, 0.15]))
    odds = 0.9 / 0.1 * np.exp(-0.3)
    torch.testing.assert_close(alignment(probs)[0, 0], torch.tensor(odds / (1 + odds), dtype=torch.float32))


def test_calling_changes_nothing_and_state_is_saved() -> None:
    alignment = DualAlignment(CLASSES, rate=0.5)
    settle(alignment, 5)
    before = alignment.bias.clone()
    alignment(skewed(1))
    assert torch.equal(alignment.bias, before)
    other = DualAlignment(CLASSES, rate=0.5)
    other.load_state_dict(alignment.state_dict())
    assert torch.equal(other(skewed(2)), alignment(skewed(2)))


def test_impossible_classes_stay_finite() -> None:
    alignment = DualAlignment(CLASSES, rate=0.5, prior=torch.tensor([0.5, 0.5, 0.0]))
    probs = torch.tensor([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    for _ in range(1000):
        alignment.update(probs)
    assert alignment(probs).isfinite().all()
