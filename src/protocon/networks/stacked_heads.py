"""Heads of many networks as one: a hidden layer and a classifier each, computed together."""

from collections.abc import Sequence
from typing import TypeVar

import torch
from torch import Tensor, nn

from protocon.networks.encoders import HiddenLayer
from protocon.networks.network import Network

_N = TypeVar("_N", bound=nn.Module)


def heads_only(network: nn.Module) -> bool:
    """Whether a network is a classifier on given features, with a hidden layer or without."""
    return (
        isinstance(network, Network)
        and network.projector is None
        and isinstance(network.encoder, HiddenLayer | nn.Identity)
    )


class StackedHeads(nn.Module):
    """Hidden layers and classifiers of G networks.

    Args:
        networks: `heads_only`, of the same sizes; their weights are copied.
    """

    mean: Tensor
    std: Tensor

    def __init__(self, networks: Sequence[nn.Module]) -> None:
        super().__init__()
        stacked = [network for network in networks if isinstance(network, Network)]
        self._layers = [name for name in _LAYERS if name in dict(stacked[0].named_modules())]
        self.register_buffer("mean", stacked[0].mean.clone())
        self.register_buffer("std", stacked[0].std.clone())
        self._as_it_is = not bool(self.mean.any()) and bool((self.std == 1).all())
        for number, name in enumerate(self._layers):
            layers = [network.get_submodule(name) for network in stacked]
            for kind in ("weight", "bias"):
                values = torch.stack([getattr(layer, kind).detach() for layer in layers])
                self.register_parameter(f"{kind}{number}", nn.Parameter(values))

    def matrices(self) -> list[nn.Parameter]:
        """What has weight decay."""
        return [self.get_parameter(f"weight{number}") for number in range(len(self._layers))]

    def biases(self) -> list[nn.Parameter]:
        """What has none."""
        return [self.get_parameter(f"bias{number}") for number in range(len(self._layers))]

    def forward(self, x: Tensor) -> Tensor:
        """Logits (G, n, C) of each network's own rows (G, n, D)."""
        x = (x - self.mean) / self.std
        for number, (weight, bias) in enumerate(zip(self.matrices(), self.biases(), strict=True)):
            x = torch.baddbmm(bias[:, None], x.relu() if number else x, weight.transpose(1, 2))
        return x

    @torch.no_grad()
    def learn(self, x: Tensor, targets: Tensor, weights: Tensor) -> None:
        """Put into every parameter's `grad` the gradient of Σ weight · cross-entropy with soft labels.

        Two layers have a gradient that can be written down; to have it derived in every step takes longer than to
        compute it.

        Args:
            x: each network's own rows, (G, n, D).
            targets: their soft labels, (G, n, C).
            weights: how much each row counts, (G, n).
        """
        inputs = [x if self._as_it_is else (x - self.mean) / self.std]
        for weight, bias in list(zip(self.matrices(), self.biases(), strict=True))[:-1]:
            inputs.append(torch.baddbmm(bias[:, None], inputs[-1], weight.transpose(1, 2)).relu_())
        logits = torch.baddbmm(self.biases()[-1][:, None], inputs[-1], self.matrices()[-1].transpose(1, 2))
        slope = logits.softmax(-1).sub_(targets).mul_(weights[..., None])
        for number in reversed(range(len(inputs))):
            weight, bias = self.matrices()[number], self.biases()[number]
            weight.grad = torch.bmm(slope.transpose(1, 2), inputs[number])
            bias.grad = slope.sum(1)
            if number:  # through the ReLU whose outputs these inputs are
                slope = torch.ops.aten.threshold_backward(torch.bmm(slope, weight), inputs[number], 0)

    @torch.no_grad()
    def unstacked(self, run: int, network: _N) -> _N:
        """Put one network's weights into `network`, which is returned."""
        for number, name in enumerate(self._layers):
            for kind in ("weight", "bias"):
                network.get_parameter(f"{name}.{kind}").copy_(self.get_parameter(f"{kind}{number}")[run])
        return network


_LAYERS = ("encoder.linear", "classifier")
