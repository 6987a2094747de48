"""Features through onnxruntime are the encoder's own, whatever the number of threads."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from rich.console import Console
from torch import Tensor, nn

from protocon.engine.setup.encode import cached_views
from protocon.features import onnx_forward as onnx_module
from protocon.features.extract import feature_table
from protocon.features.onnx_forward import ENGINE, onnx_forward
from tests.features.tiny import PROBE, VIEWS, tiny_encoder, tiny_images, tiny_module

EXAMPLE = torch.linspace(-1, 1, 2 * 3 * 32 * 32).view(2, 3, 32, 32)


def features(cache: Path, engine: str, count: int = 40) -> Tensor:
    encoder = replace(tiny_encoder()[0], engine=engine)
    return cached_views(tiny_images(count), encoder, VIEWS, cache=cache, console=Console(quiet=True)).tensor.clone()


def test_onnxruntime_computes_the_features_that_torch_does(tmp_path: Path) -> None:
    expected, found = features(tmp_path, "torch"), features(tmp_path, ENGINE)
    torch.testing.assert_close(found, expected, rtol=2e-3, atol=2e-3)


def test_onnxruntime_does_the_work_and_not_torch(tmp_path: Path) -> None:
    encoder, counting = tiny_encoder()
    cached_views(tiny_images(), replace(encoder, engine=ENGINE), VIEWS, cache=tmp_path, console=Console(quiet=True))
    assert counting.tally.images < 40  # only the probes of folding, export and comparison
    assert counting.tally.images >= PROBE


def test_the_number_of_threads_changes_no_bit(tmp_path: Path) -> None:
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        one = features(tmp_path / "one", ENGINE, 300)
        torch.set_num_threads(3)
        three = features(tmp_path / "three", ENGINE, 300)
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)
    assert torch.equal(one, three)


def test_another_engine_has_another_key(tmp_path: Path) -> None:
    encoder, images = tiny_encoder()[0], tiny_images()
    tables = [
        feature_table(images, replace(encoder, engine=engine), VIEWS, seed=0, cache=tmp_path)
        for engine in ("torch", ENGINE)
    ]
    assert tables[0].folder != tables[1].folder


class Moody(nn.Module):
    """Gives other features whenever it is exported."""

    def forward(self, x: Tensor) -> Tensor:
        sums = x.mean((2, 3))
        return sums + 1 if torch.onnx.is_in_onnx_export() else sums


def test_an_export_that_gives_other_features_is_not_used() -> None:
    assert onnx_forward(Moody().eval(), EXAMPLE) is None


def test_without_the_packages_torch_does_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnx_module, "available", lambda: False)
    assert onnx_forward(tiny_module(), EXAMPLE) is None
    assert torch.equal(features(tmp_path / "a", ENGINE), features(tmp_path / "b", "torch"))
