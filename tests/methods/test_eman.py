"""EMAN: the teacher's normalisation statistics are an exponential mean of the student's, as weights are."""

import pytest
import torch
from torch import Tensor

from protocon.networks.ema import MomentumCopy, ramped_decay
from tests.methods.harness import Run, TinyNetwork, build

DECAY = 0.8


def follow(average_statistics: bool) -> tuple[list[dict[str, Tensor]], MomentumCopy]:
    """Train five steps with the averaged network as teacher; the student's state before and after each."""
    network = TinyNetwork(batchnorm=True)
    averaged = MomentumCopy(network, statistics="averaged" if average_statistics else "copied")
    run = Run(build("fixmatch", teacher="eman", threshold=0.5), network, teacher=averaged.module)
    states = [{k: v.clone() for k, v in network.state_dict().items()}]
    for step in range(5):
        run.advance()
        averaged.update(network, ramped_decay(DECAY, step))
        states.append({k: v.clone() for k, v in network.state_dict().items()})
    return states, averaged


def exponential_mean(values: list[Tensor]) -> Tensor:
    mean = values[0].double()
    for step, value in enumerate(values[1:]):
        keep = min(DECAY, (1 + step) / (10 + step))
        mean = keep * mean + (1 - keep) * value.double()
    return mean


@pytest.mark.parametrize("name", ["norm.running_mean", "norm.running_var", "encoder.weight"])
def test_statistics_and_weights_are_averaged_alike(name: str) -> None:
    states, averaged = follow(average_statistics=True)
    expected = exponential_mean([state[name] for state in states])
    got = averaged.module.state_dict()[name].double()
    assert torch.allclose(got, expected, atol=1e-6)
    assert not torch.allclose(got, states[-1][name].double(), atol=1e-3)  # it lags behind


def test_counters_are_copied_and_the_teacher_uses_its_own_statistics() -> None:
    states, averaged = follow(average_statistics=True)
    assert averaged.module.state_dict()["norm.num_batches_tracked"] == states[-1]["norm.num_batches_tracked"]
    one = averaged.module(torch.ones(1, 8)).logits
    among_others = averaged.module(torch.cat([torch.ones(1, 8), 5.0 * torch.ones(3, 8)])).logits[:1]
    assert torch.allclose(one, among_others, atol=1e-6)


def test_without_eman_statistics_are_copied() -> None:
    states, averaged = follow(average_statistics=False)
    for name in ("norm.running_mean", "norm.running_var"):
        assert torch.equal(averaged.module.state_dict()[name], states[-1][name])
