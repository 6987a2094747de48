"""An EfficientNet-Lite as an ONNX model, written without torch's exporter."""

import onnxruntime
import pytest
import torch
from torch import nn

from protocon.features import onnx_forward as onnx_module
from protocon.features.onnx_forward import onnx_forward
from protocon.features.onnx_lite import lite_onnx
from protocon.networks.colours import WithColours
from protocon.networks.efficientnet_lite import EfficientNetLite
from protocon.networks.pooled_blocks import PooledBlocks
from protocon.networks.two_looks import TwoLooks


def lite(blocks: int, look: float = 0.0, *, colours: bool = False) -> nn.Module:
    """A network whose norms have statistics of their own."""
    torch.manual_seed(0)
    network = EfficientNetLite(0)
    for norm in network.modules():
        if isinstance(norm, nn.BatchNorm2d):
            assert norm.running_mean is not None
            norm.running_mean.normal_(std=0.2)
            nn.init.normal_(norm.bias, std=0.2)
    seen: nn.Module = network
    if look:
        seen = TwoLooks(network, blocks=blocks, share=look)
    elif blocks:
        seen = PooledBlocks(network, blocks)
    return (WithColours(seen, (), mean=(0.5, 0.4, 0.3), std=(0.5, 0.3, 0.2)) if colours else seen).eval()


@pytest.mark.parametrize(
    ("blocks", "look", "colours"),
    [(0, 0.0, False), (0, 0.0, True), (3, 0.0, False), (0, 0.6, False), (3, 0.6, True), (6, 0.8, True)],
)
@pytest.mark.parametrize("side", [64, 57, 101])  # strides pad even and odd sides differently
def test_it_gives_the_features_of_the_network(
    blocks: int, look: float, colours: bool, side: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(onnx_module, "_exported", lambda *_: pytest.fail("torch's exporter was called"))
    module = lite(blocks, look, colours=colours)
    images = torch.rand(3, 3, side, side, generator=torch.Generator().manual_seed(1)) * 2 - 1
    forward = onnx_forward(module, images[:2])
    assert forward is not None
    with torch.inference_mode():
        expected = module(images)
    assert (forward(images) - expected).abs().max() < 1e-5 * expected.abs().max()


def test_the_file_knows_no_number_of_images() -> None:
    content = lite_onnx(lite(2), (3, 64, 64))
    assert content is not None
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    assert [one.shape[0] for one in (*session.get_inputs(), *session.get_outputs())] == ["n", "n"]


def test_other_networks_are_left_to_torch() -> None:
    assert lite_onnx(nn.Conv2d(3, 4, 1), (3, 64, 64)) is None


@pytest.mark.parametrize("look", [0.0, 0.6])
def test_an_image_has_the_same_features_in_any_batch(look: float) -> None:
    module = lite(3, look, colours=bool(look))
    images = torch.rand(16, 3, 64, 64, generator=torch.Generator().manual_seed(1)) * 2 - 1
    forward = onnx_forward(module, images[:2])
    assert forward is not None
    whole = forward(images)
    for size in (1, 4, 5):
        assert torch.equal(torch.cat([forward(part) for part in torch.split(images, size)]), whole)
