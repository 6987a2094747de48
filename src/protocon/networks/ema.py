"""An exponentially averaged copy of a network: what is evaluated, saved and, with EMAN, the teacher."""

import copy

import torch
from torch import Tensor, nn


class AveragedNetwork(nn.Module):
    """Weights follow the network's by an exponential mean that starts fast and slows to `decay`.

    Args:
        network: the one to follow.
        decay: of the mean, once the ramp (1 + step) / (10 + step) has passed it.
        average_statistics: True averages the normalisation statistics too (EMAN, Cai et al., 2021);
            False copies them, as FixMatch does.
    """

    def __init__(self, network: nn.Module, *, decay: float, average_statistics: bool = False) -> None:
        super().__init__()
        self.module = copy.deepcopy(network).requires_grad_(False).eval()
        self.decay = decay
        self.average_statistics = average_statistics

    @torch.no_grad()
    def update(self, network: nn.Module, step: int) -> None:
        """Follow the network after optimiser step number `step` (from 0)."""
        weight = 1.0 - min(self.decay, (1 + step) / (10 + step))
        averaged: list[Tensor] = list(self.module.parameters())
        targets: list[Tensor] = [p.detach() for p in network.parameters()]
        for own, other in zip(self.module.buffers(), network.buffers(), strict=True):
            if self.average_statistics and own.is_floating_point():
                averaged.append(own)
                targets.append(other)
            else:
                own.copy_(other)
        torch._foreach_lerp_(averaged, targets, weight)

    def train(self, mode: bool = True) -> "AveragedNetwork":  # noqa: ARG002
        """Stays in evaluation mode: an averaged network is used, never trained."""
        return super().train(False)

    def forward(self, x: Tensor) -> object:
        """What the averaged network says."""
        return self.module(x)
