"""Local encoder weights: by name, with wrappers, in order; never silently random."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from protocon.errors import ConfigError
from protocon.networks.encoders import build_encoder


def reference_weights() -> dict[str, Tensor]:
    torch.manual_seed(1)
    module = build_encoder("resnet18", input_shape=(3, 32, 32)).module
    return {name: torch.rand_like(t) if t.is_floating_point() else t for name, t in module.state_dict().items()}


def loaded(path: Path, encoder: str = "resnet18") -> dict[str, Tensor]:
    return build_encoder(encoder, input_shape=(3, 32, 32), weights=path).module.state_dict()


def assert_loaded(path: Path, expected: dict[str, Tensor]) -> None:
    found = loaded(path)
    for name, tensor in expected.items():
        assert torch.equal(found[name], tensor), name


def test_safetensors_by_name(tmp_path: Path) -> None:
    weights = reference_weights()
    save_file(weights | {"fc.weight": torch.zeros(3, 512)}, tmp_path / "w.safetensors")
    assert_loaded(tmp_path / "w.safetensors", weights)


@pytest.mark.parametrize("prefix", ["module.", "module.encoder_q.", "backbone."])
def test_torch_checkpoint_with_wrappers(tmp_path: Path, prefix: str) -> None:
    weights = reference_weights()
    wrapped = {"epoch": 3, "state_dict": {prefix + name: tensor for name, tensor in weights.items()}}
    torch.save(wrapped, tmp_path / "w.pth")
    assert_loaded(tmp_path / "w.pth", weights)


def test_other_names_in_the_same_order(tmp_path: Path) -> None:
    weights = reference_weights()
    renamed = {
        f"layer{number:03d}": tensor
        for number, (name, tensor) in enumerate(weights.items())
        if not name.endswith("num_batches_tracked")
    }
    torch.save(renamed | {"zz.head": torch.zeros(10, 512)}, tmp_path / "w.pth")
    assert_loaded(tmp_path / "w.pth", {n: t for n, t in weights.items() if not n.endswith("num_batches_tracked")})


def test_weights_of_another_encoder_are_refused(tmp_path: Path) -> None:
    torch.save(reference_weights(), tmp_path / "w.pth")
    with pytest.raises(ConfigError, match="does not fit this encoder"):
        loaded(tmp_path / "w.pth", "resnet34")


def test_a_missing_tensor_is_an_error_not_a_random_one(tmp_path: Path) -> None:
    weights = reference_weights()
    del weights["layer4.1.conv2.weight"]
    torch.save(weights, tmp_path / "w.pth")
    with pytest.raises(ConfigError, match=r"layer4\.1\.conv2\.weight"):
        loaded(tmp_path / "w.pth")


def test_pickled_code_is_refused(tmp_path: Path) -> None:
    torch.save({"weight": torch.zeros(1), "hook": print}, tmp_path / "w.pth")
    with pytest.raises(ConfigError, match="not a checkpoint"):
        loaded(tmp_path / "w.pth")
    (tmp_path / "text.pth").write_text("hello")
    with pytest.raises(ConfigError, match="not a checkpoint"):
        loaded(tmp_path / "text.pth")
    with pytest.raises(ConfigError, match="does not exist"):
        loaded(tmp_path / "nowhere.pth")
