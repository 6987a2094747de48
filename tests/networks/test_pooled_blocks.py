"""Pooled blocks stand beside the encoder's own features, which stay as they are."""

from typing import Any

import pytest
import torch
from timm import create_model

from protocon.errors import ConfigError
from protocon.networks.pooled_blocks import PooledBlocks


def test_the_encoders_own_features_come_first_then_those_of_the_last_blocks() -> None:
    torch.manual_seed(0)
    backbone: Any = create_model("tf_efficientnet_lite0", num_classes=0).eval()
    images = torch.rand(2, 3, 64, 64)
    outputs: list[torch.Tensor] = []
    for block in backbone.blocks[-2:]:
        block.register_forward_hook(lambda _module, _inputs, out: outputs.append(out))
    wide = PooledBlocks(backbone, 2).eval()
    with torch.no_grad():
        own = backbone(images)
        blocks = [out.flatten(2).mean(2) for out in outputs]
        outputs.clear()
        found = wide(images)
    assert found.shape == (2, wide.num_features)
    torch.testing.assert_close(found[:, : own.shape[1]], own)
    torch.testing.assert_close(found[:, own.shape[1] :], torch.cat(blocks, 1))


def test_an_encoder_without_such_blocks_is_refused_with_what_to_do() -> None:
    with pytest.raises(ConfigError, match="pooled_blocks=0"):
        PooledBlocks(create_model("resnet18", num_classes=0), 2)


def test_more_blocks_than_there_are_is_an_error() -> None:
    with pytest.raises(ConfigError, match="7 blocks"):
        PooledBlocks(create_model("tf_efficientnet_lite0", num_classes=0), 8)
