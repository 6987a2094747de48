"""The trained network: normalisation, encoder f, classifier g and projector h."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from protocon.networks.encoders import Encoder
from protocon.networks.projector import ProjectorShape, build_projector, hidden_layer
from protocon.types import Outputs

MIN_CLASSES = 2
"""Outputs of a classifier that nobody trains, where images have no classes."""


class Network(nn.Module):
    """g∘f and h∘f on one encoder.

    Takes images as the views make them, float in [0, 1] of shape (n, C, H, W), or embeddings (n, D);
    normalisation is inside, so that a saved network needs no recipe for its input.

    Args:
        encoder: f.
        classes: C.
        projection_dim: d of the unit-norm projection; 0 leaves the projector out.
        mean: per channel (or per feature), subtracted first.
        std: divides next.
        projector_norm: BatchNorm after the projector's hidden layers.
        projector: its shape.
        kept_layers: hidden layers of a pre-training's head between encoder and classifier.
    """

    mean: Tensor
    std: Tensor

    def __init__(
        self,
        encoder: Encoder,
        *,
        classes: int,
        projection_dim: int,
        mean: Sequence[float] | Tensor,
        std: Sequence[float] | Tensor,
        projector_norm: bool = True,
        projector: ProjectorShape | None = None,
        kept_layers: int = 0,
    ) -> None:
        super().__init__()
        self.register_buffer("mean", torch.as_tensor(mean, dtype=torch.float32))
        self.register_buffer("std", torch.as_tensor(std, dtype=torch.float32))
        self.encoder = encoder.module
        self.classifier = nn.Linear(encoder.features, classes)
        nn.init.xavier_normal_(self.classifier.weight)
        nn.init.zeros_(self.classifier.bias)
        shape = projector or ProjectorShape()
        layers = [part for _ in range(kept_layers) for part in hidden_layer(encoder.features, shape, norm=True)]
        self.kept = nn.Sequential(*layers) if layers else None
        self.projector = (
            build_projector(encoder.features, projection_dim, shape, norm=projector_norm) if projection_dim else None
        )

    def forward(self, x: Tensor) -> Outputs:
        """Logits and unit-norm embeddings of a batch."""
        features = self.features(x)
        logits = self.classifier(features)
        if self.projector is None:
            return Outputs(logits, logits.new_zeros(len(logits), 0))
        return Outputs(logits, F.normalize(self.projector(features), dim=-1))

    def features(self, x: Tensor) -> Tensor:
        """f(x), (n, D), through the kept layers of the head where there are some."""
        spread = (1, -1, 1, 1) if x.dim() == 4 else (1, -1)
        out: Tensor = self.encoder((x - self.mean.view(spread)) / self.std.view(spread))
        return out if self.kept is None else self.kept(out)
