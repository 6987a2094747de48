"""The order of samples and draw keys: properties that hold for any sizes."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from protocon.data.loading.schedule import Plan, StepPlan
from protocon.errors import ConfigError, DataError


def epoch(plan: Plan, number: int) -> list[StepPlan]:
    return [plan.step(number, step) for step in range(plan.steps_per_epoch)]


def joined(plans: list[StepPlan], name: str) -> torch.Tensor:
    return torch.cat([getattr(plan, name) for plan in plans])


SIZES = {
    "labelled": st.integers(1, 40),
    "unlabelled": st.integers(6, 300),
    "batch_size": st.integers(1, 4).map(lambda n: 6 * n),
    "mu": st.integers(1, 4),
    "seed": st.integers(0, 2**31),
}


@settings(max_examples=25, deadline=None)
@given(**SIZES)
def test_an_epoch_has_every_unlabelled_image_once_in_batches_of_one_size(**sizes: Any) -> None:
    plan = Plan(**sizes)
    steps = epoch(plan, 3)
    assert sorted(joined(steps, "index").tolist()) == list(range(plan.unlabelled))
    lengths = [len(step.index) for step in steps]
    assert max(lengths) - min(lengths) <= 1
    assert max(lengths) <= plan.mu * plan.batch_size
    assert len(steps) == -(-plan.unlabelled // (plan.mu * plan.batch_size))


@settings(max_examples=25, deadline=None)
@given(**SIZES, world_size=st.sampled_from([2, 3, 4, 5]))
def test_ranks_joined_in_order_are_one_process(world_size: int, **sizes: Any) -> None:
    single = Plan(**sizes)
    assume(single.unlabelled // single.steps_per_epoch >= world_size)
    ranks = [Plan(**sizes, rank=rank, world_size=world_size) for rank in range(world_size)]
    for step in range(single.steps_per_epoch):
        whole, parts = single.step(2, step), [plan.step(2, step) for plan in ranks]
        for name in ("index", "keys", "labelled_index", "labelled_keys"):
            assert torch.equal(joined(parts, name), getattr(whole, name)), name
        assert whole.share == whole.labelled_share == 1.0
        mean, labelled_mean = len(whole.index) / world_size, len(whole.labelled_index) / world_size
        assert [part.share for part in parts] == pytest.approx([len(part.index) / mean for part in parts])
        labelled = [len(part.labelled_index) for part in parts]
        assert [part.labelled_share for part in parts] == pytest.approx([rows / labelled_mean for rows in labelled])
        assert min(labelled) >= 1
        assert max(labelled) - min(labelled) <= 1


@settings(max_examples=25, deadline=None)
@given(**SIZES)
def test_the_labelled_stream_treats_all_alike_across_epochs(**sizes: Any) -> None:
    plan = Plan(**sizes)
    steps = [step for number in range(3) for step in epoch(plan, number)]
    stream = joined(steps, "labelled_index")
    assert len(stream) == 3 * plan.steps_per_epoch * plan.batch_size
    counts = np.bincount(stream.numpy(), minlength=plan.labelled)
    assert counts.max() - counts.min() <= 1
    for start in range(0, len(stream) - plan.labelled + 1, plan.labelled):
        assert sorted(stream[start : start + plan.labelled].tolist()) == list(range(plan.labelled))


PLAN = Plan(labelled=10, unlabelled=100, batch_size=8, mu=3, seed=5)


def test_any_step_can_be_had_without_those_before() -> None:
    steps = [step for number in range(3) for step in epoch(PLAN, number)]
    late = Plan(labelled=10, unlabelled=100, batch_size=8, mu=3, seed=5).step(2, 1)
    expected = steps[2 * PLAN.steps_per_epoch + 1]
    for name in ("index", "keys", "labelled_index", "labelled_keys"):
        assert torch.equal(getattr(late, name), getattr(expected, name))


def test_a_given_order_changes_nothing() -> None:
    assert torch.equal(PLAN.step(1, 2, PLAN.order(1)).index, PLAN.step(1, 2).index)


def test_epochs_and_seeds_differ_in_order() -> None:
    other = Plan(labelled=10, unlabelled=100, batch_size=8, mu=3, seed=6)
    orders = [PLAN.order(0), PLAN.order(1), other.order(0)]
    assert len({tuple(order) for order in orders}) == 3
    assert not torch.equal(PLAN.step(0, 0).labelled_index, other.step(0, 0).labelled_index)
    stream = joined(epoch(PLAN, 0), "labelled_index")
    assert not torch.equal(stream[:10], stream[10:20])


def test_every_draw_has_its_own_key() -> None:
    other = Plan(labelled=10, unlabelled=100, batch_size=8, mu=3, seed=6)
    keys = [
        joined(epoch(plan, number), name)
        for plan in (PLAN, other)
        for number in range(3)
        for name in ("keys", "labelled_keys")
    ]
    together = torch.cat(keys)
    assert len(torch.unique(together)) == len(together)


def test_an_image_keeps_its_key_wherever_it_stands_in_the_epoch() -> None:
    larger = Plan(labelled=10, unlabelled=100, batch_size=4, mu=5, seed=5)
    by_index = []
    for plan in (PLAN, larger):
        steps = epoch(plan, 1)
        by_index.append(joined(steps, "keys")[joined(steps, "index").argsort()])
    assert torch.equal(*by_index)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"batch_size": 2, "world_size": 3}, ConfigError, "some would have no labelled images"),
        ({"batch_size": 0}, ConfigError, "must both be 1 or more"),
        ({"mu": 0}, ConfigError, "must both be 1 or more"),
        ({"seed": -1}, ConfigError, "0 or more"),
        ({"rank": 2, "world_size": 2}, ConfigError, "Rank 2 of 2"),
        ({"unlabelled": 0}, DataError, "no unlabelled images"),
        ({"unlabelled": 3, "world_size": 4}, DataError, "too few for 4 processes"),
    ],
)
def test_impossible_plans_are_refused(change: dict[str, int], error: type[Exception], message: str) -> None:
    sizes: dict[str, Any] = {"labelled": 10, "unlabelled": 100, "batch_size": 8, "mu": 3, "seed": 5}
    with pytest.raises(error, match=message):
        Plan(**{**sizes, **change})


def test_there_is_no_step_beyond_the_epoch() -> None:
    with pytest.raises(IndexError, match="no step 5"):
        PLAN.step(0, 5)


def test_without_labels_there_is_no_labelled_row_and_nothing_else_changes() -> None:
    without = Plan(labelled=0, unlabelled=100, batch_size=8, mu=3, seed=5, world_size=2).step(1, 2)
    with_labels = Plan(labelled=10, unlabelled=100, batch_size=8, mu=3, seed=5, world_size=2).step(1, 2)
    assert len(without.labelled_index) == len(without.labelled_keys) == 0
    assert torch.equal(without.index, with_labels.index)
    assert torch.equal(without.keys, with_labels.keys)
