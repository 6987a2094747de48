"""The losses that make a method special reach the weights, with the gradient that their values have."""

import copy
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.methods.harness import STEPS_PER_EPOCH, Run, TinyNetwork, build, loss_of

LOSSES: list[tuple[str, str, dict[str, Any]]] = [
    ("comatch", "lambda_ctr", {"graph_threshold": 0.4}),
    ("simmatch", "lambda_in", {}),
    ("freematch", "lambda_f", {"threshold_momentum": 0.7}),
    ("protocon", "lambda_p", {"lambda_c": 0.0}),
    ("protocon", "lambda_c", {"lambda_p": 0.0}),
    ("fixmatch-da", "lambda_u", {"threshold": 0.5}),
    ("debiaspl", "lambda_u", {"threshold": 0.5}),
    ("flexmatch", "lambda_u", {"threshold": 0.5}),
    ("softmatch", "lambda_u", {}),
    ("pseudo-label", "lambda_u", {"threshold": 0.5}),
]


def trained(name: str, weight: str, value: float, settings: dict[str, Any]) -> Run:
    """A method some epochs on, whose targets come from a network that does not move."""
    network = TinyNetwork()
    off = {} if weight == "lambda_u" else {"lambda_u": 0.0}
    method = build(name, teacher="eman", **{weight: 1.0}, **settings, **off)
    run = Run(method, network, teacher=copy.deepcopy(network))
    run.advance(2 * STEPS_PER_EPOCH + 1)
    other = build(name, teacher="eman", **{weight: value}, **settings, **off)
    other.load_state_dict(method.state_dict())
    return Run(other, network, teacher=run.teacher, step=run.step)


def gradient(run: Run) -> list[Tensor]:
    run.network.zero_grad()
    loss = run.look().loss
    assert loss is not None
    torch.autograd.backward(loss)
    return [
        torch.zeros_like(weight) if weight.grad is None else weight.grad.clone() for weight in run.network.parameters()
    ]


@pytest.mark.parametrize(("name", "weight", "settings"), LOSSES)
def test_a_loss_pulls_as_its_value_says(name: str, weight: str, settings: dict[str, Any]) -> None:
    run, without = (trained(name, weight, value, settings) for value in (1.0, 0.0))
    pull = [own - its for own, its in zip(gradient(run), gradient(without), strict=True)]
    length = float(sum((part**2).sum() for part in pull) ** 0.5)
    assert length > 1e-3
    direction = [part / length for part in pull]
    slopes = []
    for measured in (run, without):
        values = []
        for step in (0.01, -0.02):  # forth, and back by twice as much
            with torch.no_grad():
                for own, part in zip(measured.network.parameters(), direction, strict=True):
                    own.add_(part, alpha=step)
            values.append(loss_of(measured.look()))
        slopes.append((values[0] - values[1]) / 0.02)
    assert slopes[0] - slopes[1] == pytest.approx(length, rel=0.05)


@pytest.mark.parametrize(("name", "weight", "settings"), [row for row in LOSSES if row[0] in ("comatch", "simmatch")])
def test_losses_of_embeddings_reach_the_projector(name: str, weight: str, settings: dict[str, Any]) -> None:
    run = trained(name, weight, 1.0, settings)
    gradient(run)
    assert isinstance(run.network, TinyNetwork)
    assert run.network.projector.weight.grad is not None
    assert run.network.projector.weight.grad.abs().max() > 1e-4
