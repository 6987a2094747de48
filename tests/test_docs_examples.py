"""What the documentation shows is run: the example method is trained, the commands are parsed."""

import importlib.util
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from protocon.compare import grid
from protocon.compare.comparison import Comparison
from protocon.compare.request import Request
from protocon.methods import METHODS, Method
from tests.commands import run_command
from tests.compare.records import comparison
from tests.engine.runs import small_config, small_run

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"


def blocks(page: str, language: str) -> list[str]:
    """Code blocks of a page."""
    text = (DOCS / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)


def console_lines(page: str) -> list[str]:
    """What a page says to type."""
    return [line for text in blocks(page, "console") for line in text.splitlines()]


def commands() -> list[str]:
    """Comparisons that the pages show."""
    found = [*console_lines("comparing.md"), *console_lines("adding-a-method.md")]
    return [line for line in found if line.startswith("protocon compare")]


def file_and_line() -> tuple[str, str]:
    """What the page adds: a method's file, and its line of the table."""
    code, line, _ = blocks("adding-a-method.md", "python")
    return code, line


def load(file: Path, code: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A module of this code, for the length of a test."""
    file.write_text(code, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, file.stem, module)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def mean_teacher(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> type[Method]:
    """The page's method among the others."""
    code, line = file_and_line()
    module = load(tmp_path / "meanteacher.py", code, monkeypatch)
    name, place = re.findall(r'"(.+?)"', line)
    added: type[Method] = getattr(module, place.removeprefix("meanteacher:"))
    monkeypatch.setitem(METHODS, name, added)
    return added


@pytest.fixture(scope="module")
def grown_project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project with the page's file and line, and nothing else, added."""
    project = tmp_path_factory.mktemp("grown")
    for part in ("src", "tests"):
        shutil.copytree(ROOT / part, project / part)  # with what is compiled, which spares compiling it again
    shutil.copy(ROOT / "pyproject.toml", project)
    code, line = file_and_line()
    methods = project / "src" / "protocon" / "methods"
    (methods / "meanteacher.py").write_text(code, encoding="utf-8")
    table = (methods / "__init__.py").read_text(encoding="utf-8")
    before, last, after = table.partition('    "softmatch": "softmatch:SoftMatch",\n')
    assert last
    (methods / "__init__.py").write_text(before + last + line + after, encoding="utf-8")
    return project


def run_in(project: Path, *arguments: str) -> str:
    """Output of a Python module of that project."""
    paths = os.pathsep.join([str(project / "src"), str(project)])
    done = subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=project,
        env=os.environ | {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.usefixtures("mean_teacher")
def test_it_is_trained_as_the_page_says(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    (train,) = [line for line in console_lines("adding-a-method.md") if line.startswith("protocon train")]
    config = run_command(monkeypatch, capsys, *shlex.split(train)[1:], "--dry-run", "--json").json["config"]
    assert config["method_name"] == "mean-teacher"
    assert config["method"]["lambda_u"] == 20.0


def test_one_file_and_one_line_are_enough(grown_project: Path) -> None:
    """What holds for every method holds for the page's."""
    (check,) = [line for line in console_lines("adding-a-method.md") if "pytest" in line]
    said = run_in(grown_project, *shlex.split(check)[2:], "-p", "no:cacheprovider")
    passed = re.search(r"(\d+) passed", said)
    assert passed is not None, said
    assert int(passed[1]) >= 15
    assert "skipped" not in said


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


def test_the_example_with_two_networks_trains_both(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, _, code = blocks("adding-a-method.md", "python")
    module = load(tmp_path / "crosspseudo.py", code, monkeypatch)
    monkeypatch.setitem(METHODS, "cross-pseudo", module.CrossPseudo)
    result = small_run(tmp_path, "epochs=2", "batch_size=16", method="cross-pseudo", labels_per_class=8)
    assert result["test_accuracy_weights"] > 0.3  # chance is 0.1
    rows = [json.loads(line) for line in (Path(result["run"]) / "metrics.jsonl").read_text().splitlines()]
    for name in ("network", "other"):
        assert rows[1][f"loss_x_{name}"] < rows[0][f"loss_x_{name}"]


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
