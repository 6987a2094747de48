"""Optimisers by name: they are those of torch and timm, learn, and resume to the bit."""

from pathlib import Path

import pytest
import torch
from timm.optim.lars import Lars
from torch import nn
from torch.optim import SGD, AdamW, Optimizer

from protocon.engine.loop.checkpoint import optimizer_tensors, restore_optimizer
from protocon.engine.loop.optimizers import OPTIMIZERS, build_optimizer
from protocon.engine.run import fit, resume_run
from protocon.errors import ConfigError
from protocon.settings.config import build_config
from protocon.settings.resolved_config import ResolvedOptim
from tests.engine.kills import assert_same_run
from tests.engine.runs import quiet
from tests.engine.test_pins import begun, config_for

KINDS: dict[str, type[Optimizer]] = {"sgd": SGD, "adamw": AdamW, "lars": Lars}


def updated(network: nn.Module, optimizer: Optimizer, steps: int) -> torch.Tensor:
    for number in range(steps):
        optimizer.zero_grad()
        (network(torch.arange(4.0) + number) ** 2).sum().backward()
        optimizer.step()
    return torch.cat([p.detach().flatten() for p in network.parameters()])


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_biases_have_no_weight_decay_and_saved_state_gives_the_same_weights(name: str) -> None:
    config = ResolvedOptim(optimizer=name, lr=0.01, weight_decay=0.1, batch_size=4, epochs=1)  # type: ignore[arg-type]
    network, other = nn.Linear(4, 2), nn.Linear(4, 2)
    other.load_state_dict(network.state_dict())
    optimizer = build_optimizer(network, config)
    assert isinstance(optimizer, KINDS[name])
    assert [group["weight_decay"] for group in optimizer.param_groups] == [0.1, 0.0]
    before = updated(network, optimizer, 3)
    other.load_state_dict(network.state_dict())
    resumed = build_optimizer(other, config)
    saved = {key: tensor.clone() for key, tensor in optimizer_tensors(optimizer).items()}  # as a file would hold it
    restore_optimizer(resumed, saved)
    whole, continued = updated(network, optimizer, 3), updated(other, resumed, 3)
    assert not torch.equal(before, whole)
    assert torch.equal(whole, continued)


@pytest.mark.parametrize("name", ["adamw", "lars"])
def test_a_run_with_another_optimiser_resumes_to_the_bit(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = (f"optimizer={name}", "lr=0.003")
    whole = Path(fit(config_for(tmp_path, *settings), out=tmp_path / "whole", name="run", console=quiet())["run"])
    run = begun(tmp_path, monkeypatch, *settings)
    resume_run(run, quiet())
    assert_same_run(whole, run.path)


def test_an_unknown_optimiser_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"optim\.optimizer"):
        build_config(overrides=["optimizer=adam"])
