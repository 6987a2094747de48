"""`protocon recipes show`: settings without auto, the paper's figure, time and memory."""

from dataclasses import replace

import pytest
import torch

from protocon.networks.encoders import build_encoder
from protocon.paper.paper_cells import PaperCell
from protocon.paper.paper_rows import IMAGENET_ROWS
from protocon.reproduce.availability import missing_part
from protocon.settings.config import build_config
from tests.commands import run_command


def test_a_cell_is_shown_with_figure_time_and_memory(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = run_command(monkeypatch, capsys, "recipes", "show", "table1/cifar10-40/protocon", "--json").json
    assert shown["settings"]["optim"]["epochs"] == 9363  # 2^20 steps in passes of 112
    assert "auto" not in shown["settings_yaml"].replace("accelerator: auto", "").partition("storage")[0]
    assert (shown["paper"], shown["steps"]) == ([95.2, 1.8], 9363 * 112)
    assert shown["seconds"] > 0
    assert shown["memory_bytes"] > 1.5e8  # the images alone
    assert any("95.2 % ± 1.8" in line for line in shown["lines"])


def kept_for_backward(images: int, side: int) -> int:
    """Bytes that a real forward pass of a ResNet-50 keeps, each once; weights count alike for any number of images."""
    network = build_encoder("resnet50", input_shape=(3, side, side)).module.train()
    kept = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        kept[tensor.untyped_storage().data_ptr()] = tensor  # held, so that no other tensor gets its place
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        network(torch.zeros(images, 3, side, side))
    return sum(tensor.untyped_storage().nbytes() for tensor in kept.values())


def test_the_memory_of_a_resnet_50_is_what_its_forward_pass_keeps(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = run_command(monkeypatch, capsys, "recipes", "show", "table3/imagenet-1/protocon", "--json").json
    step = 128 * (1 + 5)  # 128 labelled images, a strong view of five times as many
    image = (kept_for_backward(3, 64) - kept_for_backward(1, 64)) / 2 * (224 / 64) ** 2
    assert 0.95 < shown["memory_bytes"] / (step * image) < 1.25


def test_memory_counts_the_views_that_a_method_learns_from(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    memory = {
        row: run_command(monkeypatch, capsys, "recipes", "show", f"table1/mini-imagenet-400/{row}", "--json").json[
            "memory_bytes"
        ]
        for row in ("fixmatch", "comatch")
    }
    # A batch of 64 labelled images with 7 unlabelled ones each: FixMatch learns from one view of these, CoMatch two.
    assert memory["comatch"] / memory["fixmatch"] == pytest.approx((1 + 14) / (1 + 7), rel=0.2)


def test_a_method_that_is_not_there_yet_is_said_plainly(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cell = PaperCell("table3", "imagenet-1", "swav", (53.9, None))
    monkeypatch.setitem(IMAGENET_ROWS, "swav", replace(IMAGENET_ROWS["swav"], method="finetunes"))
    shown = run_command(monkeypatch, capsys, "recipes", "show", cell.name)
    assert shown.code == 0
    assert "not available: there is no method finetunes in this version" in shown.out
    monkeypatch.setitem(IMAGENET_ROWS, "swav", replace(IMAGENET_ROWS["swav"], method="fixmatch", recipe="imagenets"))
    assert "there is no recipe imagenets in this version" in str(missing_part(cell))


def test_a_cell_is_a_recipe_for_every_command() -> None:
    config = build_config(recipe="table3/imagenet-1/debiaspl", overrides=["epochs=2"])
    assert (config.method_name, config.data.labels_percent, config.optim.mu) == ("debiaspl", 1, 5)
    assert config.method.model_dump()["threshold"] == 0.7
