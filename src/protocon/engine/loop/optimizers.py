"""OPTIMIZERS: the optimiser of a network by its name. A new one is one function and one line here."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn
from torch.optim import SGD, AdamW, Optimizer

from protocon.base.no_compiler import spare_compiler
from protocon.settings.resolved_config import ResolvedOptim

Groups = list[dict[str, Any]]
"""Weights with their weight decay."""


def build_optimizer(network: nn.Module, config: ResolvedOptim, rates: Mapping[str, float] | None = None) -> Optimizer:
    """The optimiser that is asked for, without weight decay on biases and normalisation.

    These are the weights with fewer than two dimensions. Each group has its factor on the learning rate as `rate`.

    Args:
        network: whose weights are trained.
        config: its settings.
        rates: factors for weights whose names start so; 1 for all others.
    """
    groups: dict[tuple[float, bool], Groups] = {}
    for name, weight in network.named_parameters():
        if not weight.requires_grad:
            continue
        rate = next((factor for start, factor in (rates or {}).items() if name.startswith(start)), 1.0)
        decays = weight.dim() > 1
        group = {"params": [], "weight_decay": config.weight_decay if decays else 0.0, "rate": rate}
        groups.setdefault((rate, decays), [group])[0]["params"].append(weight)
    ordered = sorted(groups, key=lambda key: (-key[0], not key[1]))
    return optimizer_of([group for key in ordered for group in groups[key]], config)


def optimizer_of(groups: Groups, config: ResolvedOptim) -> Optimizer:
    """The optimiser that is asked for, over these groups of weights."""
    spare_compiler(Optimizer.add_param_group, Optimizer.zero_grad, Optimizer.state_dict, Optimizer.load_state_dict)
    return OPTIMIZERS[config.optimizer](groups, config)


_SGD_STEP = inspect.unwrap(SGD.step)


class _PlainSGD(SGD):
    """torch's own, to the bit. torch's imports the compiler in every step, to tell it to keep out."""

    def step(self, closure: Any = None) -> Any:
        """Update all weights."""
        with torch.no_grad():
            return _SGD_STEP(self, closure)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget all gradients, without a mark for the profiler, which takes longer."""
        if not set_to_none:
            super().zero_grad(set_to_none)
            return
        for group in self.param_groups:
            for weight in group["params"]:
                weight.grad = None


def _sgd(groups: Groups, config: ResolvedOptim) -> Optimizer:
    """The paper's."""
    nesterov = config.nesterov and config.momentum > 0
    return _PlainSGD(groups, lr=config.lr, momentum=config.momentum, nesterov=nesterov, fused=True)


def _adamw(groups: Groups, config: ResolvedOptim) -> Optimizer:
    """Adam with decoupled weight decay (Loshchilov and Hutter, 2019); `momentum` is β₁, β₂ is 0.999."""
    return AdamW(groups, lr=config.lr, betas=(config.momentum, 0.999))


def _lars(groups: Groups, config: ResolvedOptim) -> Optimizer:
    """SGD whose rate follows each layer's weights (You et al., 2017), for large batches; biases have the plain rate."""
    from timm.optim.lars import Lars  # takes seconds to import

    nesterov = config.nesterov and config.momentum > 0
    lars: Callable[..., Optimizer] = Lars  # timm's has no types
    for group in groups:  # weights have a rate of their own even without decay, biases and normalisation never
        group["always_adapt"] = all(weight.dim() > 1 for weight in group["params"])
    trust = config.lars_trust
    return lars(groups, lr=config.lr, momentum=config.momentum, nesterov=nesterov, trust_coeff=trust)


OPTIMIZERS: dict[str, Callable[[Groups, ResolvedOptim], Optimizer]] = {"sgd": _sgd, "adamw": _adamw, "lars": _lars}
"""From groups of weights and settings to an optimiser; `optim.optimizer` takes its names."""
