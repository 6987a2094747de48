"""The projector h: a small multi-layer perceptron whose shape is part of a method."""

from dataclasses import dataclass
from typing import Literal

from torch import nn


@dataclass(frozen=True)
class ProjectorShape:
    """Hidden layers are as wide as the encoder's features."""

    layers: int = 2
    """Linear layers."""
    norm: bool = True
    """BatchNorm after each hidden layer, where `network.projector_norm` does not switch it off."""
    last_norm: bool = False
    """BatchNorm without shift after the last layer too, as in SimCLR v2."""
    activation: Literal["relu", "gelu"] = "relu"


def build_projector(features: int, dim: int, shape: ProjectorShape, *, norm: bool) -> nn.Sequential:
    """From features (n, features) to projections (n, dim), not yet of unit norm.

    Args:
        features: width of the encoder's features.
        dim: of the projection.
        shape: the method's.
        norm: the setting `network.projector_norm`.
    """
    layers: list[nn.Module] = []
    for _ in range(shape.layers - 1):
        layers += hidden_layer(features, shape, norm=norm)
    layers.append(nn.Linear(features, dim))
    if shape.last_norm and norm:
        last = nn.BatchNorm1d(dim)
        last.bias.requires_grad_(False)  # zero, and stays zero
        layers.append(last)
    return nn.Sequential(*layers)


def hidden_layer(features: int, shape: ProjectorShape, *, norm: bool) -> list[nn.Module]:
    """One hidden layer.

    Args:
        features: its width.
        shape: the method's.
        norm: whether BatchNorm is switched on.
    """
    activation: nn.Module = nn.ReLU(inplace=True) if shape.activation == "relu" else nn.GELU()
    return [
        nn.Linear(features, features),
        nn.BatchNorm1d(features) if norm and shape.norm else nn.Identity(),
        activation,
    ]
