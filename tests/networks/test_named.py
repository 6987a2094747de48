"""Encoders by short names: what they stand for, and what is said where their weights cannot be fetched."""

from pathlib import Path
from typing import Any

import pytest
import timm
import torch
from safetensors.torch import save_file
from timm import create_model, is_model_pretrained

from protocon.errors import ConfigError
from protocon.networks.encoders import build_encoder
from protocon.networks.named import NAMED
from protocon.settings.auto import image_size_for
from protocon.settings.config import build_config

OWN = {"data": {"name": "imagefolder", "root": "photos"}}


@pytest.mark.parametrize("name", NAMED)
def test_a_short_name_is_a_model_with_weights(name: str) -> None:
    named = NAMED[name]
    assert is_model_pretrained(named.model)
    config = build_config(settings=OWN, overrides=[f"network.encoder={name}"])
    assert config.network.encoder == named.model
    assert config.network.frozen
    assert config.network.pretrained == (not named.packaged)
    assert config.method_name == "protocon-frozen"
    assert image_size_for(400, config) == named.side


def test_what_is_said_goes_before_what_a_name_implies() -> None:
    file = build_config(settings=OWN, overrides=["network.encoder=dinov2-small", "network.weights=model.safetensors"])
    assert not file.network.pretrained
    trained = build_config(settings=OWN, overrides=["network.encoder=convnext-tiny", "network.frozen=false"])
    assert not trained.network.frozen
    assert trained.network.pretrained


def test_a_transformer_from_a_file_takes_images_of_another_size(tmp_path: Path) -> None:
    name = NAMED["dinov2-small"].model
    whole = create_model(name, pretrained=False, num_classes=0, depth=1)
    save_file(whole.state_dict(), tmp_path / "model.safetensors")

    def shallow(*args: Any, **options: Any) -> torch.nn.Module:
        return create_model(*args, **options, depth=1)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(timm, "create_model", shallow)
        encoder = build_encoder(name, input_shape=(3, 56, 56), weights=tmp_path / "model.safetensors")
    assert torch.equal(encoder.module.state_dict()["cls_token"], whole.state_dict()["cls_token"])
    with torch.inference_mode():
        assert encoder.module.eval()(torch.zeros(2, 3, 56, 56)).shape == (2, encoder.features)
    assert encoder.features == 384


def test_without_a_connection_the_message_says_how_to_bring_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    def unreachable(*_: object, **__: object) -> None:
        raise OSError("no route to host")

    monkeypatch.setattr(timm, "create_model", unreachable)
    name = NAMED["dinov2-small"].model
    with pytest.raises(ConfigError, match=r"no route to host.*hf download timm/vit_small_patch14_dinov2.lvd142m"):
        build_encoder(name, input_shape=(3, 224, 224), pretrained=True)
    with pytest.raises(ConfigError, match=r"--encoder dinov2-small --weights model\.safetensors"):
        build_encoder(name, input_shape=(3, 224, 224), pretrained=True)
