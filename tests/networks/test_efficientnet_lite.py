"""EfficientNet-Lite of our own: the same network as timm's, to the bit, without timm."""

import pytest
import torch
from timm import create_model

from protocon.networks.efficientnet_lite import EfficientNetLite, lite_size


@pytest.mark.parametrize("size", [0, 2])
def test_same_names_and_features_as_timms(size: int) -> None:
    theirs = create_model(f"tf_efficientnet_lite{size}", num_classes=0).eval()
    for buffer in theirs.buffers():
        if buffer.is_floating_point():
            buffer.add_(0.1 * torch.rand(buffer.shape))  # statistics that are not 0 and 1
    ours = EfficientNetLite(size).eval()
    assert list(ours.state_dict()) == list(theirs.state_dict())
    ours.load_state_dict(theirs.state_dict())
    with torch.inference_mode():
        for side in (64, 75):  # padding differs between even and odd sides
            images = torch.randn(2, 3, side, side)
            assert torch.equal(ours(images), theirs(images))


def test_only_names_of_the_family_are_taken_for_it() -> None:
    assert lite_size("tf_efficientnet_lite4") == 4
    for name in ("tf_efficientnet_lite", "tf_efficientnet_lite9", "efficientnet_lite0", "tf_efficientnet_lite0.in1k"):
        assert lite_size(name) is None
