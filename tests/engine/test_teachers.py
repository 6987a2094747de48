"""Who judges the weak views in a real run, and what the averaged copy is made of."""

from typing import Any

import pytest
import torch
from torch import Tensor

from protocon.engine.loop.trainer import Trainer, build_trainer, unwrap
from protocon.engine.setup.fabric import build_fabric
from protocon.engine.setup.session import prepare
from protocon.methods import METHODS
from protocon.types import Step
from tests.engine.runs import small_config
from tests.methods.harness import is_plain

STEPS = 3


def trainer_of(method: str, teacher: str) -> Trainer:
    config = small_config(f"method.teacher={teacher}", method=method)
    return build_trainer(prepare(config), build_fabric(config))


def statistics(trainer: Trainer, *, averaged: bool) -> dict[str, Tensor]:
    network = trainer.averaged.module if averaged else unwrap(trainer.network)
    return {name: tensor.double() for name, tensor in network.state_dict().items() if "running_" in name}


def train(trainer: Trainer) -> list[dict[str, Tensor]]:
    """A few steps of the second epoch; the student's statistics before them and after each."""
    seen = [statistics(trainer, averaged=False)]
    trainer.network.train()
    for raw in list(trainer.loader.epoch(1))[:STEPS]:
        trainer.train_step(raw, 1)
        seen.append(statistics(trainer, averaged=False))
    return seen


@pytest.mark.parametrize("teacher", ["student", "eman"])
@pytest.mark.parametrize("method", [name for name in METHODS if is_plain(METHODS[name])])
def test_the_judge_is_the_one_that_was_asked_for(method: str, teacher: str, monkeypatch: pytest.MonkeyPatch) -> None:
    trainer = trainer_of(method, teacher)
    judges = []
    take_step = trainer.session.method.step

    def watched(network: Any, judge: Any, *rest: Any) -> Step:
        judges.append(judge)
        return take_step(network, judge, *rest)

    monkeypatch.setattr(trainer.session.method, "step", watched)
    seen = train(trainer)
    expected = trainer.averaged.module if teacher == "eman" else trainer.network
    assert len(judges) == STEPS
    assert all(judge is expected for judge in judges)

    for name, own in statistics(trainer, averaged=True).items():
        mean = seen[0][name]
        for step, state in enumerate(seen[1:]):
            keep = min(trainer.config.optim.ema, (1 + step) / (10 + step))
            mean = keep * mean + (1 - keep) * state[name]
        wanted = mean if teacher == "eman" else seen[-1][name]
        torch.testing.assert_close(own, wanted, atol=1e-5, rtol=1e-4)
        assert not torch.allclose(mean, seen[-1][name], atol=1e-4), name  # they can be told apart
