"""What the documentation shows is run: the example method is trained, the commands are parsed."""

import importlib.util
import json
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from protocon.methods import METHODS, Method
from protocon.results import grid
from protocon.results.comparison import Comparison
from protocon.results.request import Request
from tests.commands import run_command
from tests.engine.runs import small_config, small_run
from tests.results.records import comparison

DOCS = Path(__file__).parents[1] / "docs"


def blocks(page: str, language: str) -> list[str]:
    """Code blocks of a page."""
    text = (DOCS / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)


def commands() -> list[str]:
    found = [
        line
        for page in ("comparing.md", "adding-a-method.md")
        for text in blocks(page, "console")
        for line in text.splitlines()
    ]
    return [line for line in found if line.startswith("protocon compare")]


@pytest.fixture
def mean_teacher(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> type[Method]:
    """The page's method, added as the page says."""
    file = tmp_path / "meanteacher.py"
    code, line = blocks("adding-a-method.md", "python")
    file.write_text(code, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("meanteacher", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "meanteacher", module)
    spec.loader.exec_module(module)
    name, _, class_name = line.strip().rstrip(",").partition(": ")
    added: type[Method] = getattr(module, class_name)
    monkeypatch.setitem(METHODS, json.loads(name), added)
    return added


def test_the_example_method_trains(mean_teacher: type[Method], tmp_path: Path) -> None:
    result = small_run(tmp_path, "epochs=2", "ramp=0.5", "batch_size=16", method="mean-teacher", labels_per_class=8)
    assert result["method"] == "mean-teacher"
    assert result["test_accuracy_weights"] > 0.3  # chance is 0.1
    rows: list[dict[str, Any]] = [
        json.loads(line) for line in (Path(result["run"]) / "metrics.jsonl").read_text().splitlines()
    ]
    assert rows[1]["loss_x"] < rows[0]["loss_x"]
    assert all(row["loss_u"] > 0 for row in rows)
    assert rows[1]["pseudo_accuracy_refined"] > 0.2
    assert mean_teacher.__name__ == "MeanTeacher"


def test_its_settings_are_checked_like_all_others(mean_teacher: type[Method]) -> None:
    config = small_config("lambda_u=20", method="mean-teacher")
    assert isinstance(config.method, mean_teacher.Config)
    assert config.method.model_dump() == {"joint_batchnorm": False, "teacher": "eman", "lambda_u": 20.0, "ramp": 0.2}
    with pytest.raises(Exception, match="did you mean lambda_u"):
        small_config("lambda_v=20", method="mean-teacher")


def test_there_are_commands_to_check() -> None:
    assert len(commands()) >= 4


@pytest.mark.parametrize("command", commands())
@pytest.mark.usefixtures("mean_teacher")
def test_commands_are_valid(command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    asked: list[Request] = []

    def run_nothing(request: Request, **_: Any) -> Comparison:
        asked.append(request)
        return comparison({("protocon", 2): (0.5,)})

    monkeypatch.setattr(grid, "compare", run_nothing)
    done = run_command(monkeypatch, capsys, *shlex.split(command)[1:])
    assert done.code == 0, done.err
    assert "protocon" in asked[0].configs
    assert "50.00" in done.out
