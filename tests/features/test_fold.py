"""Folding changes how features are computed, not what they are; what cannot be folded is left alone."""

import pytest
import torch
from timm import create_model
from torch import Tensor, nn

from protocon.features.fold import fold_norms

EXAMPLE = torch.linspace(-1, 1, 2 * 3 * 64 * 64).view(2, 3, 64, 64)


def trained(name: str) -> nn.Module:
    """An encoder whose norms have statistics and weights of their own."""
    torch.manual_seed(0)
    module: nn.Module = create_model(name, num_classes=0)
    for norm in module.modules():
        if isinstance(norm, nn.BatchNorm2d):
            assert norm.running_mean is not None
            assert norm.running_var is not None
            norm.running_mean.normal_(std=0.2)
            norm.running_var.uniform_(0.5, 2.0)
            nn.init.uniform_(norm.weight, 0.5, 1.5)
            nn.init.normal_(norm.bias, std=0.2)
    return module.eval()


def norms(module: nn.Module) -> int:
    return sum(isinstance(part, nn.BatchNorm2d) for part in module.modules())


@pytest.mark.parametrize("name", ["test_efficientnet", "test_byobnet", "resnet18", "tf_efficientnet_lite0"])
def test_features_stay_and_norms_go(name: str) -> None:
    module = trained(name)
    before = norms(module)
    folded = fold_norms(module, EXAMPLE)
    assert norms(folded) < before / 2
    assert norms(module) == before  # the encoder itself is untouched
    images = torch.rand(4, 3, 64, 64, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        expected, found = module(images), folded(images)
    assert (expected - found).abs().max() < 1e-4 * expected.abs().max()


class OutOfOrder(nn.Module):
    """Its norm is made after a convolution that it does not follow."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(3, 3, 1)
        self.norm = nn.BatchNorm2d(3)
        nn.init.constant_(self.norm.bias, 1.0)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.convolution(self.norm(x)).mean((2, 3))
        return out


def test_an_encoder_that_is_written_otherwise_is_left_as_it_is() -> None:
    module = OutOfOrder().eval()
    assert fold_norms(module, EXAMPLE) is module


def test_one_without_norms_gives_the_same() -> None:
    torch.manual_seed(0)
    module = create_model("test_vit", num_classes=0, img_size=64).eval()
    folded = fold_norms(module, EXAMPLE)
    with torch.no_grad():
        assert torch.equal(folded(EXAMPLE), module(EXAMPLE))
