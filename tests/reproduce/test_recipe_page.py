"""`protocon recipes show`: settings without auto, the paper's figure, time and memory."""

from dataclasses import replace

import pytest

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
