"""Support sets: balanced over classes, a function of the step alone, sliced between processes."""

from typing import Any

import numpy as np
import pytest
import torch

from protocon.data.loading.schedule import Plan
from protocon.data.loading.support import Support, SupportOrder
from protocon.errors import ConfigError, DataError

TARGETS = np.array([0, 1, 2, 0, 1, 2, 0, 0, 0, 4])  # five, two, two and one; no label of class 3


def test_every_class_has_its_images_and_repeats_them_only_where_it_has_too_few() -> None:
    order = SupportOrder(Support(per_class=4), TARGETS, seed=3)
    drawn = order.positions(7)
    assert TARGETS[drawn].tolist() == [0] * 4 + [1] * 4 + [2] * 4 + [4] * 4
    assert len(set(drawn[:4])) == 4
    assert np.bincount(drawn[4:8])[[1, 4]].tolist() == [2, 2]
    assert drawn[12:].tolist() == [9] * 4
    assert order.rows == 16


def test_another_step_or_seed_draws_other_images_and_the_same_draws_the_same() -> None:
    order = SupportOrder(Support(per_class=2, classes=3), TARGETS, seed=3)
    steps = [order.positions(number).tolist() for number in range(20)]
    assert len({tuple(step) for step in steps}) > 10
    assert {label for step in steps for label in TARGETS[step]} == {0, 1, 2, 4}
    assert all(len(set(TARGETS[step])) == 3 for step in steps)
    again = SupportOrder(Support(per_class=2, classes=3), TARGETS, seed=3)
    assert again.positions(11).tolist() == steps[11]
    other = SupportOrder(Support(per_class=2, classes=3), TARGETS, seed=4)
    assert [other.positions(number).tolist() for number in range(20)] != steps


@pytest.mark.parametrize("world_size", [2, 3])
def test_processes_join_to_the_support_set_of_one_with_other_keys_for_repeats(world_size: int) -> None:
    order = SupportOrder(Support(per_class=4), TARGETS, seed=3)

    def plans(size: int) -> list[Plan]:
        sizes: dict[str, Any] = {"labelled": 10, "unlabelled": 100, "batch_size": 8, "mu": 3, "seed": 5}
        return [Plan(**sizes, rank=rank, world_size=size, support=order) for rank in range(size)]

    (one,) = [plan.step(1, 2) for plan in plans(1)]
    several = [plan.step(1, 2) for plan in plans(world_size)]
    assert torch.equal(torch.cat([part.support_index for part in several]), one.support_index)
    assert torch.equal(torch.cat([part.support_keys for part in several]), one.support_keys)
    assert sum(part.support_share for part in several) == pytest.approx(world_size)
    assert len(torch.unique(one.support_keys)) == 16
    assert not torch.equal(one.support_keys, plans(1)[0].step(1, 3).support_keys)


def test_impossible_support_sets_are_refused() -> None:
    with pytest.raises(ConfigError, match="1 or more"):
        Support(per_class=0)
    with pytest.raises(DataError, match="5 classes per step, but there are labels of 4"):
        SupportOrder(Support(per_class=1, classes=5), TARGETS, seed=0)
    order = SupportOrder(Support(per_class=1, classes=2), TARGETS, seed=0)
    with pytest.raises(ConfigError, match="too few for 3 processes"):
        Plan(labelled=10, unlabelled=100, batch_size=8, mu=3, seed=5, world_size=3, support=order)
