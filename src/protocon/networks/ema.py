"""A momentum copy of a network: what is evaluated and saved, and the teacher of EMAN, MoCo, DINO and the like."""

import copy
import weakref
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

Statistics = Literal["copied", "averaged", "batch"]
"""Where a copy's normalisation statistics come from: copied from the network, as FixMatch does; averaged as weights are
(EMAN, Cai et al., 2021); or its own, from the batch that it sees, as in MoCo and DINO."""


@dataclass(frozen=True)
class _Pairs:
    """Tensors of a copy and of the network that it follows: to find them takes longer than to average small ones."""

    network: "weakref.ref[nn.Module]"
    averaged: list[Tensor]
    targets: list[Tensor]
    copied: list[tuple[Tensor, Tensor]]


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
        self._pairs: _Pairs | None = None
        self.train()

    @torch.no_grad()
    def update(self, network: nn.Module, decay: float) -> None:
        """Keep this share of the copy's weights, and take the rest from the network."""
        if self._pairs is None or self._pairs.network() is not network:
            self._pairs = self._paired(network)
        for own, other in self._pairs.copied:
            own.copy_(other)
        torch._foreach_lerp_(self._pairs.averaged, self._pairs.targets, 1.0 - decay)

    def _paired(self, network: nn.Module) -> "_Pairs":
        averaged: list[Tensor] = list(self.module.parameters())
        targets: list[Tensor] = list(network.parameters())
        copied: list[tuple[Tensor, Tensor]] = []
        for own, other in zip(self.module.buffers(), network.buffers(), strict=True):
            if self.statistics == "averaged" and own.is_floating_point():
                averaged.append(own)
                targets.append(other)
            elif self.statistics != "batch":
                copied.append((own, other))
        return _Pairs(weakref.ref(network), averaged, targets, copied)

    def train(self, mode: bool = True) -> "MomentumCopy":  # noqa: ARG002
        """Always in the mode that `statistics` calls for: a copy is used, never trained."""
        return super().train(self.statistics == "batch")

    def forward(self, x: Tensor) -> object:
        """The copy's outputs."""
        return self.module(x)


def ramped_decay(decay: float, step: int) -> float:
    """The decay at a step (from 0): it starts at 1/10, so that a copy soon forgets the first weights, and grows."""
    return min(decay, (1 + step) / (10 + step))
