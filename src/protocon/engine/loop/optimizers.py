"""The optimiser of a network, and its groups of weights."""

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
