"""Parameter groups and the learning rate as a function of the step."""

import math

from torch import nn
from torch.optim import SGD

from protocon.settings.config import OptimConfig


def build_optimizer(network: nn.Module, config: OptimConfig) -> SGD:
    """SGD without weight decay on biases and normalisation (everything with fewer than two dimensions)."""
    trainable = [p for p in network.parameters() if p.requires_grad]
    groups = [
        {"params": [p for p in trainable if p.dim() > 1], "weight_decay": config.weight_decay},
        {"params": [p for p in trainable if p.dim() <= 1], "weight_decay": 0.0},
    ]
    return SGD(
        [group for group in groups if group["params"]],
        lr=float(config.lr),
        momentum=config.momentum,
        nesterov=config.nesterov and config.momentum > 0,
        fused=True,
    )


def learning_rate(base: float, step: int, total_steps: int) -> float:
    """FixMatch's cosine, cos(7πk / 16K): it ends at a fifth of the base rate, not at zero."""
    return base * math.cos(7.0 * math.pi * step / (16.0 * total_steps))
