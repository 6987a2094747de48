"""One table of options: each sets its setting, in every command that takes it; `--help` imports nothing large."""

import inspect
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import protocon
from protocon.__main__ import answers_at_once
from protocon.commands.compare import compare
from protocon.commands.data import check
from protocon.commands.options import DATA, GROUPS, NETWORK, TRAINING, ChosenData, Option
from protocon.commands.split import split
from protocon.commands.train import train
from protocon.compare.request import build_request
from protocon.data.registry import DATASET_NAMES, DATASETS
from protocon.errors import ConfigError, DataError
from protocon.methods import METHOD_NAMES, METHODS
from protocon.settings.config import flat_settings
from tests.commands import run_command

OPTIONS = {option.flags[0]: option for group in GROUPS for option in group.options}
SAMPLES: dict[str, Any] = {
    "--data": "cifar10",
    "--root": Path("/photos"),
    "--labels": Path("labels.csv"),
    "--labels-per-class": 3,
    "--labels-percent": 2.5,
    "--image-size": 40,
    "--seed": 7,
    "--encoder": "wrn-10-1",
    "--weights": Path("encoder.pth"),
    "--init": Path("/a-file.safetensors"),
    "--frozen": True,
    "--method": "simmatch",
    "--epochs": 9,
    "--time-budget": "90s",
    "--compile": True,
    "--precision": "bf16-mixed",
}


def chosen(*arguments: str, **values: Any) -> ChosenData:
    return ChosenData(arguments, {OPTIONS[f"--{name.replace('_', '-')}"]: value for name, value in values.items()})


# --from-scratch takes a default back: tests/test_default_encoder.py.
SETTING = [o for o in OPTIONS.values() if o.setting != "recipe" and o.name != "from_scratch"]


@pytest.mark.parametrize("option", SETTING, ids=lambda o: o.name)
def test_an_option_sets_its_setting_and_nothing_else(option: Option) -> None:
    value = SAMPLES[option.flags[0]]
    before = flat_settings(ChosenData().resolve().config())
    after = flat_settings(ChosenData((), {option: value}).resolve().config())
    key = option.setting
    assert {"optim.time_budget": 90.0}.get(key, str(value)) in (after[key], str(after[key]))
    changed = {name for name in after if after[name] != before.get(name)}
    own_method = {"method_name"} if key == "network.frozen" else set()  # a frozen encoder gets a method of its own
    assert {name for name in changed if not name.startswith("method.")} == {key} | own_method


def test_options_go_over_the_recipe_and_settings_over_options() -> None:
    recipe = {"recipe": "paper-cifar10"}
    assert chosen(**recipe).resolve().config().method.model_dump()["neighbours"] == 250
    assert chosen(**recipe, epochs=3).resolve().config().optim.epochs == 3
    assert chosen("optim.epochs=4", **recipe, epochs=3).resolve().config().optim.epochs == 4


def test_a_run_folder_stands_for_its_weights(tmp_path: Path) -> None:
    assert chosen(init=tmp_path).resolve().config().network.weights == tmp_path / "model.safetensors"


def test_two_options_that_contradict_each_other_are_both_named() -> None:
    with pytest.raises(ConfigError, match="--epochs 3 and --time-budget 2h both say how long to train"):
        chosen(epochs=3, time_budget="2h").resolve()
    with pytest.raises(ConfigError, match="--init a and --weights b both say what the encoder starts from"):
        chosen(init=Path("a"), weights=Path("b")).resolve()


def test_arguments_are_a_folder_and_settings(tmp_path: Path) -> None:
    for name in ("cat", "dog"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "1.png").write_bytes(b"x")
    inputs = chosen(str(tmp_path), "alpha=0.7", frozen=True).resolve()
    assert inputs.settings["data"] == {"name": "imagefolder", "root": tmp_path}
    assert inputs.overrides == ("alpha=0.7",)
    assert inputs.said is not None
    assert "2 class folders" in inputs.said
    with pytest.raises(DataError, match="nor a folder or file"):
        chosen("nowhere").resolve()
    assert chosen(data="hf:some/name").resolve().settings["data"] == {"name": "hf", "root": Path("some/name")}


def test_commands_that_take_data_take_the_same_options() -> None:
    every = {option.name for option in OPTIONS.values()}
    data = {option.name for option in DATA.options}
    of_grid = {"seed", "labels_percent", "method", "time_budget"}
    for command, expected in ((train, every), (check, every), (split, data), (compare, every - of_grid)):
        assert expected <= set(inspect.signature(command).parameters), command.__name__
    assert not of_grid & set(inspect.signature(compare).parameters)
    assert "frozen" in {option.name for option in NETWORK.options}
    assert "epochs" in {option.name for option in TRAINING.options}


def test_options_of_a_comparison_reach_every_method() -> None:
    inputs = chosen(frozen=True, encoder="resnet18", image_size=64, epochs=2).resolve()
    request = build_request(settings=inputs.settings, recipe=inputs.recipe, overrides=inputs.overrides)
    for config in request.configs.values():
        assert (config.network.frozen, config.network.encoder) == (True, "resnet18")
        assert (config.data.image_size, config.optim.epochs) == (64, 2)
        assert (config.data.labels_per_class, config.run.seed) == (1, 0)


@pytest.mark.parametrize(
    ("arguments", "advice"),
    [
        (["train", "--label-per-class", "2"], "did you mean --labels-per-class?"),
        (["data", "check", "--freeze"], "did you mean --frozen?"),
        (["compare", "--seed", "2"], "did you mean --seeds?"),
        (["train", "--batch-size", "2"], "optim.batch_size=VALUE"),
        (["train", "--queue-size", "2"], "method.queue_size=VALUE"),
        (["evaluate", "run", "--qqqq"], "see --help"),
        (["trian"], "train"),
    ],
)
def test_an_unknown_option_names_what_was_meant(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str], advice: str
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    done = run_command(monkeypatch, capsys, *arguments)
    assert done.code == 2
    assert advice in done.err


def test_names_that_are_known_without_torch_are_those_of_the_tables() -> None:
    assert list(METHOD_NAMES) == list(METHODS)
    assert list(DATASET_NAMES) == list(DATASETS)


SCRIPT = """
import contextlib, io, json, os, sys
from protocon.cli import main

said = {}
def run(*arguments):
    sys.argv = ["protocon", *arguments]
    with contextlib.redirect_stdout(io.StringIO()) as out:
        try:
            main()
        except SystemExit as stop:
            assert not stop.code, stop.code
    return out.getvalue()

def complete(*words):
    os.environ |= {"_PROTOCON_COMPLETE": "complete_bash", "COMP_WORDS": " ".join(("protocon", *words))}
    os.environ["COMP_CWORD"] = str(len(words))
    try:
        return run().split()
    finally:
        del os.environ["_PROTOCON_COMPLETE"]

said["version"] = run("--version")
said["help"] = run("--help")
said["train"] = run("train", "--help")
said["completion"] = run("--show-completion", "bash")
said["recipes"] = run("recipes", "--json")
said["data"] = complete("train", "--data", "cif")
said["method"] = complete("train", "--method", "fix")
said["recipe"] = complete("train", "--recipe", "paper-c")
before = sorted(set(sys.modules) & {"torch", "numpy", "sklearn", "PIL", "matplotlib"})
said["methods"] = complete("compare", "--methods", "protocon,la")
print(json.dumps({"large": before, "torch": "torch" in sys.modules, **said}))
"""


@pytest.fixture(scope="module")
def said() -> dict[str, Any]:
    """What the quick commands print, all in one fresh process."""
    environment = os.environ | {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=environment, stdout=subprocess.PIPE, text=True, check=True, timeout=60
    )
    content: dict[str, Any] = json.loads(done.stdout)
    return content


def test_quick_commands_import_nothing_large(said: dict[str, Any]) -> None:
    assert said["large"] == []
    assert not said["torch"]


def test_version_help_and_recipes(said: dict[str, Any]) -> None:
    assert said["version"] == f"protocon {protocon.__version__}\n"
    for command in ("train", "demo", "compare", "evaluate", "predict", "report", "export", "split", "recipes", "data"):
        assert f" {command} " in said["help"]
    for text in ("Data", "Network", "Training", "Output", "--labels-per-class", "--frozen", "--epochs", "--json"):
        assert text in said["train"]
    assert "paper-cifar10" in json.loads(said["recipes"])["recipes"]


def test_the_shell_completes_names(said: dict[str, Any]) -> None:
    assert "_PROTOCON_COMPLETE=complete_bash" in said["completion"]
    assert said["data"] == ["cifar10", "cifar100"]
    assert said["method"] == ["fixmatch", "fixmatch-da"]
    assert said["recipe"] == ["paper-cifar10", "paper-cifar100"]
    assert said["methods"] == ["protocon,label-spreading"]


def test_only_commands_that_compute_start_python_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("_PROTOCON_COMPLETE", raising=False)
    for arguments in ([], ["--help"], ["--version"], ["recipes"], ["train", "--help"], ["recipes", "paper"]):
        assert answers_at_once(arguments), arguments
    for arguments in (
        ["train"],
        ["train", "recipes"],
        ["compare", "--methods", "protocon"],
        ["predict", "run", "x.png"],
    ):
        assert not answers_at_once(arguments), arguments
    monkeypatch.setenv("_PROTOCON_COMPLETE", "complete_bash")
    assert answers_at_once(["train"])
