"""A momentum copy of a network: what is evaluated and saved, and the teacher of EMAN, MoCo, DINO and the like."""

import copy
from typing import Literal

import torch
from torch import Tensor, nn

Statistics = Literal["copied", "averaged", "batch"]
"""Where a copy's normalisation statistics come from: copied from the network, as FixMatch does; averaged as weights are
(EMAN, Cai et al., 2021); or its own, from the batch that it sees, as in MoCo and DINO."""


class MomentumCopy(nn.Module):
    """Weights follow a network's by an exponential mean. They get no gradient.

    Args:
        network: the one to follow; the copy starts equal to it.
        statistics: see `Statistics`. Only with "batch" is the copy in training mode.
    """

    def __init__(self, network: nn.Module, *, statistics: Statistics = "copied") -> None:
        super().__init__()
        self.statistics = statistics
        self.module = copy.deepcopy(network).requires_grad_(False)
        self.train()

    @torch.no_grad()
    def update(self, network: nn.Module, decay: float) -> None:
        """Keep this share of the copy's weights, and take the rest from the network."""
        averaged: list[Tensor] = list(self.module.parameters())
        targets: list[Tensor] = [p.detach() for p in network.parameters()]
        for own, other in zip(self.module.buffers(), network.buffers(), strict=True):
            if self.statistics == "averaged" and own.is_floating_point():
                averaged.append(own)
                targets.append(other)
            elif self.statistics != "batch":
                own.copy_(other)
        torch._foreach_lerp_(averaged, targets, 1.0 - decay)

    def train(self, mode: bool = True) -> "MomentumCopy":  # noqa: ARG002
        """Always in the mode that `statistics` calls for: a copy is used, never trained."""
        return super().train(self.statistics == "batch")

    def forward(self, x: Tensor) -> object:
        """The copy's outputs."""
        return self.module(x)


def ramped_decay(decay: float, step: int) -> float:
    """The decay at a step (from 0): it starts at 1/10, so that a copy soon forgets the first weights, and grows."""
    return min(decay, (1 + step) / (10 + step))
