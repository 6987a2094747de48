"""The gradient of stacked heads that is written down is the one that torch derives."""

import pytest
import torch
from torch import nn

from protocon.networks.encoders import Encoder, HiddenLayer
from protocon.networks.network import Network
from protocon.networks.stacked_heads import StackedHeads

RUNS, ROWS, WIDTH, CLASSES = 3, 7, 5, 4


def networks(hidden: int, mean: float) -> list[nn.Module]:
    torch.manual_seed(0)
    built: list[nn.Module] = []
    for _ in range(RUNS):
        encoder = Encoder(HiddenLayer(WIDTH, hidden), hidden) if hidden else Encoder(nn.Identity(), WIDTH)
        middle, spread = torch.full((WIDTH,), mean), torch.full((WIDTH,), 1.0 + mean)
        built.append(Network(encoder, classes=CLASSES, projection_dim=0, mean=middle, std=spread))
    return built


@pytest.mark.parametrize("mean", [0.0, 0.5])
@pytest.mark.parametrize("hidden", [0, 6])
def test_it_is_the_gradient_of_weighted_cross_entropies(hidden: int, mean: float) -> None:
    heads = StackedHeads(networks(hidden, mean))
    x = torch.randn(RUNS, ROWS, WIDTH)
    targets, weights = torch.rand(RUNS, ROWS, CLASSES).softmax(-1), torch.rand(RUNS, ROWS)
    weights[0, -1] = 0.0  # a row that fills up
    loss = -(weights * (targets * heads(x).log_softmax(-1)).sum(-1)).sum()
    expected = torch.autograd.grad(loss, list(heads.parameters()))
    heads.learn(x, targets, weights)
    for weight, gradient in zip(heads.parameters(), expected, strict=True):
        assert weight.grad is not None
        torch.testing.assert_close(weight.grad, gradient, rtol=1e-5, atol=1e-6)
    x[0, -1] = 100.0
    before = [weight.grad.clone() for weight in heads.parameters() if weight.grad is not None]
    heads.learn(x, targets, weights)
    for weight, gradient in zip(heads.parameters(), before, strict=True):
        assert weight.grad is not None
        assert torch.equal(weight.grad, gradient)  # which counts for nothing
