"""A frozen encoder with a trained part on top: a run on cached features, as one network."""

from torch import Tensor, nn

from protocon.networks.encoders import Encoder
from protocon.networks.network import Network


class FrozenFeatures(nn.Module):
    """Encoder, components of its features, trained part: images (n, C, H, W) → (n, D').

    Args:
        backbone: the frozen encoder, from normalised pixels to D features.
        space: from features to components.
        trained: from components on.
    """

    def __init__(self, backbone: nn.Module, *, space: nn.Module, trained: nn.Module) -> None:
        super().__init__()
        self.backbone = backbone
        self.space = space
        self.trained = trained

    def forward(self, x: Tensor) -> Tensor:
        """What the heads see."""
        out: Tensor = self.trained(self.space(self.backbone(x)))
        return out


def stack(backbone: Encoder, trained: Encoder, space: nn.Module) -> Encoder:
    """One encoder of images from an encoder of images and one of components of its features.

    Args:
        backbone: from images to features; it stays as it is.
        trained: from components to what the heads take.
        space: from features to components.
    """
    module = FrozenFeatures(backbone.module, space=space, trained=trained.module)
    return Encoder(module, trained.features, backbone.mean, backbone.std)


def with_space_names(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Tensors of a model file by today's names: version 0.1 kept the space's beside the encoder's."""
    old = {"encoder.mean": "encoder.space.mean", "encoder.matrix": "encoder.space.matrix"}
    return {old.get(name, name): tensor for name, tensor in tensors.items()}


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
