"""A frozen encoder with a trained part on top: what a run on cached features leaves behind as one network."""

import torch
from torch import Tensor, nn

from protocon.networks.encoders import Encoder
from protocon.networks.network import Network


class FrozenFeatures(nn.Module):
    """Encoder, standardised features, trained part: images (n, C, H, W) → (n, D').

    While heads train, only features exist, and `Network` standardises them with its own mean and spread. Here both
    move inside the encoder, since the network's own are those of pixels again.
    """

    mean: Tensor
    std: Tensor

    def __init__(self, backbone: Encoder, trained: Encoder) -> None:
        super().__init__()
        self.backbone = backbone.module
        self.register_buffer("mean", torch.zeros(backbone.features))
        self.register_buffer("std", torch.ones(backbone.features))
        self.trained = trained.module

    def forward(self, x: Tensor) -> Tensor:
        """What the heads see."""
        features = self.backbone(x)
        out: Tensor = self.trained((features - self.mean) / self.std)
        return out


def stack(backbone: Encoder, trained: Encoder) -> Encoder:
    """One encoder of images from an encoder of images and one of its features."""
    return Encoder(FrozenFeatures(backbone, trained), trained.features, backbone.mean, backbone.std)


def complete(heads: Network, backbone: nn.Module, *, mean: Tensor, std: Tensor) -> Network:
    """The whole network, from pixels, of heads that were trained on features; shares their tensors.

    Args:
        heads: takes features.
        backbone: the frozen encoder, from normalised pixels to features.
        mean: per channel, of pixels in [0, 1].
        std: likewise.
    """
    features, width = len(heads.mean), heads.classifier.in_features
    encoder = stack(Encoder(backbone, features), Encoder(heads.encoder, width))
    whole = Network(encoder, classes=heads.classifier.out_features, projection_dim=0, mean=mean, std=std)
    with torch.no_grad():
        whole.encoder.mean.copy_(heads.mean)  # type: ignore[operator,union-attr]
        whole.encoder.std.copy_(heads.std)  # type: ignore[operator,union-attr]
    whole.classifier = heads.classifier
    whole.projector = heads.projector
    return whole.eval()
