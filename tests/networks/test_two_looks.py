"""A second look with norms that know the image itself, against NumPy and against what it must leave as it is."""

import numpy as np
import pytest
import torch
from torch import nn

from protocon.errors import ConfigError
from protocon.features.fold import fold_norms
from protocon.networks.efficientnet_lite import EfficientNetLite, Inverted
from protocon.networks.encoders import build_encoder
from protocon.networks.own_statistics import with_own_statistics
from protocon.networks.pooled_blocks import PooledBlocks
from protocon.networks.two_looks import SHARED, TwoLooks


def network(size: int = 0) -> EfficientNetLite:
    torch.manual_seed(0)
    made = EfficientNetLite(size)
    for norm in made.modules():
        if isinstance(norm, nn.BatchNorm2d):
            assert norm.running_mean is not None
            norm.running_mean.normal_(std=0.2)
            nn.init.normal_(norm.bias, std=0.2)
    return made.eval()


def images(count: int = 3, side: int = 64) -> torch.Tensor:
    return torch.rand(count, 3, side, side, generator=torch.Generator().manual_seed(1)) * 2 - 1


def pooled_norm(before: np.ndarray, norm: nn.BatchNorm2d, share: float) -> np.ndarray:
    """The norm fitted to two sets of pixels, ImageNet's with weight 1 − share and the image's own with weight share."""
    assert norm.running_mean is not None
    assert norm.running_var is not None
    mean, variance = norm.running_mean.double().numpy(), norm.running_var.double().numpy() + norm.eps
    gain, bias = norm.weight.detach().double().numpy(), norm.bias.detach().double().numpy()
    out = np.zeros_like(before)
    for image in range(before.shape[0]):
        for channel in range(before.shape[1]):
            pixels = before[image, channel]
            both = (1 - share) * mean[channel] + share * pixels.mean()
            second = (1 - share) * (variance[channel] + mean[channel] ** 2) + share * (pixels**2).mean()
            spread = np.sqrt(second - both**2)
            out[image, channel] = gain[channel] * (pixels - both) / spread + bias[channel]
    return out


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_the_norm_is_that_of_both_sets_of_pixels_together(share: float) -> None:
    generator = torch.Generator().manual_seed(2)
    norm = nn.BatchNorm2d(4).eval()
    assert norm.running_mean is not None
    assert norm.running_var is not None
    norm.running_mean.copy_(torch.tensor([0.5, -1.0, 0.0, 2.0]))
    norm.running_var.copy_(torch.tensor([1.0, 0.2, 3.0, 0.5]))
    nn.init.normal_(norm.weight, mean=1.0, generator=generator)
    nn.init.normal_(norm.bias, generator=generator)
    before = torch.randn(2, 4, 5, 6, generator=generator) * 2 + 1
    with torch.no_grad():
        found = with_own_statistics(norm(before), norm.weight, norm.bias, share)
    np.testing.assert_allclose(found.numpy(), pooled_norm(before.double().numpy(), norm, share), atol=2e-4)


def test_the_first_look_is_the_plain_network_and_the_second_is_not() -> None:
    plain, two = PooledBlocks(network(), 3), TwoLooks(network(), blocks=3, share=0.6)
    with torch.no_grad():
        expected, found = plain(images()), two(images())
    width = plain.num_features
    assert two.num_features == 2 * width
    assert two.parts == plain.parts * 2
    torch.testing.assert_close(found[:, :width], expected)
    assert (found[:, width:] - expected).abs().max() > 0.01 * expected.abs().max()


def test_with_no_share_both_looks_are_the_same() -> None:
    two = TwoLooks(network(), blocks=2, share=0.0)
    with torch.no_grad():
        first, second = two(images()).chunk(2, dim=1)
    torch.testing.assert_close(first, second)


def test_the_share_grows_from_block_to_block_behind_the_common_stages() -> None:
    two = TwoLooks(network(2), blocks=4, share=0.6)
    shares = two.shares()
    assert all(share == 0 for stage in shares[:SHARED] for share in stage)
    later = [share for stage in shares[SHARED:] for share in stage]
    assert len(later) == sum(isinstance(part, Inverted) for part in two.modules()) - len(two.backbone.stages()[1])
    assert later == pytest.approx([0.6 * (place + 1) / len(later) for place in range(len(later))])


def test_each_image_is_looked_at_by_itself() -> None:
    two = TwoLooks(network(), blocks=2, share=0.6)
    with torch.no_grad():
        together, alone = two(images()), torch.cat([two(image[None]) for image in images()])
    torch.testing.assert_close(together, alone, rtol=1e-4, atol=1e-5)


def test_folding_leaves_the_norms_that_are_asked_for_other_statistics() -> None:
    two = TwoLooks(network(), blocks=2, share=0.6).eval()
    quicker = fold_norms(two, images())
    assert quicker is not two
    norms = [part for part in quicker.modules() if isinstance(part, nn.BatchNorm2d)]
    later = [unit for stage in two.backbone.stages()[SHARED:] for unit in stage]
    assert len(norms) == len(later)
    with torch.no_grad():
        torch.testing.assert_close(quicker(images()), two(images()), rtol=1e-3, atol=1e-4)


def test_only_an_efficientnet_lite_can_look_twice() -> None:
    with pytest.raises(ConfigError, match=r"second_look=0, or leave --encoder out"):
        build_encoder("wrn-10-1", input_shape=(3, 32, 32), second_look=0.5, frozen=True)
    with pytest.raises(ConfigError, match="7 blocks"):
        TwoLooks(network(), blocks=8, share=0.6)
