"""The one place where a network is put together from its encoder and the settings of its heads."""

from collections.abc import Sequence

from torch import Tensor

from protocon.methods import METHODS
from protocon.networks.encoders import Encoder
from protocon.networks.network import Network
from protocon.settings.resolved_config import ResolvedConfig


def build_network(
    config: ResolvedConfig,
    encoder: Encoder,
    *,
    classes: int,
    mean: Sequence[float] | Tensor,
    std: Sequence[float] | Tensor,
) -> Network:
    """Encoder, classifier, and the projector where the method uses one. Draws from torch's generator.

    Args:
        config: without `auto`.
        encoder: f, with or without trained weights.
        classes: C.
        mean: per channel (or per feature), subtracted from the input.
        std: divides it next.
    """
    method = METHODS[config.method_name]
    return Network(
        encoder,
        classes=classes,
        projection_dim=config.network.projection_dim if method.uses_projector else 0,
        mean=mean,
        std=std,
        projector_norm=config.network.projector_norm,
        projector=method.projector,
        kept_layers=getattr(config.method, "head_layers", 0),
    )


def trained_part(config: ResolvedConfig) -> str:
    """Name of the encoder between frozen features and heads."""
    return f"mlp-{config.network.hidden}" if config.network.hidden else "none"
