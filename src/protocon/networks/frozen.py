"""A frozen encoder with a trained part on top: a run on cached features, as one network."""

import torch
from torch import Tensor, nn

from protocon.networks.encoders import Encoder
from protocon.networks.network import Network


class FrozenFeatures(nn.Module):
    """Encoder, principal components of its features, trained part: images (n, C, H, W) → (n, D').

    Args:
        backbone: the frozen encoder, from normalised pixels to D features.
        mean: of the features, (D,).
        matrix: from centred features to components, (D, k).
        trained: from components on.
    """

    mean: Tensor
    matrix: Tensor

    def __init__(self, backbone: nn.Module, *, mean: Tensor, matrix: Tensor, trained: nn.Module) -> None:
        super().__init__()
        self.backbone = backbone
        self.register_buffer("mean", mean)
        self.register_buffer("matrix", matrix)
        self.trained = trained

    def forward(self, x: Tensor) -> Tensor:
        """Input of the heads."""
        out: Tensor = self.trained((self.backbone(x) - self.mean) @ self.matrix)
        return out


def stack(backbone: Encoder, trained: Encoder, *, components: int) -> Encoder:
    """One encoder of images from an encoder of images and one of `components` of its features; weights come later.

    Args:
        backbone: the frozen encoder of images.
        trained: the trained layer on the components of its features.
        components: how many there are.
    """
    empty = torch.zeros(backbone.features, components)
    module = FrozenFeatures(backbone.module, mean=empty[:, 0].clone(), matrix=empty, trained=trained.module)
    return Encoder(module, trained.features, backbone.mean, backbone.std)


def complete(heads: Network, features: FrozenFeatures, *, mean: Tensor, std: Tensor) -> Network:
    """The whole network, from pixels, of heads that were trained on components; shares their tensors.

    Args:
        heads: takes components.
        features: from normalised pixels to what the heads' classifier and projector take.
        mean: per channel, of pixels in [0, 1].
        std: likewise.
    """
    encoder = Encoder(features, heads.classifier.in_features)
    whole = Network(encoder, classes=heads.classifier.out_features, projection_dim=0, mean=mean, std=std)
    whole.classifier = heads.classifier
    whole.projector = heads.projector
    return whole.eval()
