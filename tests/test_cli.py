"""The command line: exit codes, JSON, messages, and what each command does."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file
from sklearn.datasets import load_digits

from protocon.engine.setup.session import prepare
from protocon.methods import METHODS
from protocon.settings.config import validate
from tests.commands import Finished, run_command
from tests.engine.runs import SMALL, small_run


class Shell:
    """`protocon …` in this process."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.fixtures = (monkeypatch, capsys)

    def __call__(self, *arguments: str) -> Finished:
        return run_command(*self.fixtures, *arguments)


@pytest.fixture
def protocon(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(monkeypatch, capsys)


@pytest.fixture(scope="module")
def finished_run(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return small_run(tmp_path_factory.mktemp("runs"), "epochs=12", labels_per_class=8, method="fixmatch-da")


def test_dry_run_shows_sizes_and_trains_nothing(protocon: Shell, tmp_path: Path) -> None:
    out = tmp_path / "runs"
    done = protocon("train", "--labels-per-class", "2", "--dry-run", "--json", "--out", str(out))
    assert done.code == 0
    sizes = done.json["sizes"]
    assert (sizes["unlabelled"], sizes["labelled"], sizes["classes"]) == (1377, 20, 10)
    assert sizes["clusters"] == 1377 // sizes["neighbours"]
    assert sizes["gamma"] == pytest.approx(0.9 * sizes["neighbours"])
    assert sizes["steps"] == sizes["epochs"] * sizes["steps_per_epoch"]
    assert "total" in done.json["memory"]
    assert done.json["config"]["network"]["encoder"] == "wrn-10-1"
    assert not out.exists()
    text = protocon("train", "--labels-per-class", "2", "--dry-run").out
    for word in ("alpha: 0.8", "neighbours", "gamma", "dual_rate", "MiB"):
        assert word in text


def test_train_prints_one_json_object(protocon: Shell, tmp_path: Path) -> None:
    done = protocon("train", "--labels-per-class", "2", "--out", str(tmp_path), "--json", "epochs=2", *SMALL)
    assert done.code == 0
    for key in ("run", "test_accuracy", "seconds", "clusters_in_use", "smallest_cluster", "gamma"):
        assert key in done.json
    assert "epoch 2/2" in done.err  # progress, where there is no terminal to draw bars on
    refused = protocon("train", "--resume", done.json["run"], "--json", "epochs=5")
    assert refused.code == 1
    assert "own settings" in refused.err
    again = protocon("train", "--resume", done.json["run"], "--json")
    assert again.json == done.json
    assert "finished" in again.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "--data", "digit"], "did you mean digits"),
        (["train", "--labels-per-class", "2", "alpa=1"], "did you mean alpha"),
        (["train", "--labels-per-class", "500"], "500"),
        (["train", "--data", "folder", "--root", "/nowhere"], "/nowhere"),
        (["train", "--resume", "/nowhere"], "not a run folder"),
        (["evaluate", "/nowhere"], "model.safetensors"),
        (["recipes", "papr"], "did you mean paper"),
    ],
)
def test_our_errors_are_one_message_and_exit_code_1(protocon: Shell, arguments: list[str], message: str) -> None:
    done = protocon(*arguments)
    assert done.code == 1
    assert message in done.err
    assert "Traceback" not in done.err
    assert done.out == ""


def test_debug_shows_the_traceback(protocon: Shell) -> None:
    with pytest.raises(Exception, match="did you mean digits"):
        protocon("train", "--data", "digit", "--debug")


@pytest.mark.parametrize("arguments", [["train", "--nonsense"], ["nonsense"], ["train", "--seed", "x"]])
def test_wrong_usage_is_exit_code_2(protocon: Shell, arguments: list[str]) -> None:
    assert protocon(*arguments).code == 2


def test_evaluate_agrees_with_training(protocon: Shell, finished_run: dict[str, Any]) -> None:
    done = protocon("evaluate", finished_run["run"], "--json")
    assert done.json["test_accuracy"] == pytest.approx(finished_run["test_accuracy_last_epoch"])
    assert done.json["test_images"] == 400
    assert len(done.json["accuracy_by_class"]) == 10
    assert "test accuracy" in protocon("evaluate", finished_run["run"]).out


def test_predict_labels_image_files(protocon: Shell, finished_run: dict[str, Any], tmp_path: Path) -> None:
    digits = load_digits()
    files = []
    for number in range(20):
        path = tmp_path / f"digit {number}.png"
        Image.fromarray((digits.images[number] * 15.9375).astype(np.uint8)).save(path)
        files.append(str(path))
    done = protocon("predict", finished_run["run"], *files, "--json")
    assert done.code == 0
    labels = [row["label"] for row in done.json["predictions"]]
    right = sum(label == str(truth) for label, truth in zip(labels, digits.target[:20], strict=True))
    assert right >= 14  # chance would be 2
    (tmp_path / "broken.png").write_text("no image")
    done = protocon("predict", finished_run["run"], files[0], str(tmp_path / "broken.png"), "--json")
    assert done.code == 1
    assert done.json["predictions"][0]["label"] == labels[0]
    assert "broken.png" in done.json["predictions"][1]["error"]


def test_split_is_saved_and_used(protocon: Shell, tmp_path: Path) -> None:
    file = tmp_path / "split.json"
    done = protocon("split", str(file), "--labels-per-class", "3", "--seed", "7", "--json")
    assert (done.code, done.json["labelled"], done.json["unlabelled"]) == (0, 30, 1367)
    drawn = json.loads(file.read_text())
    assert protocon("split", str(file), "--labels-per-class", "3").code == 1  # not overwritten
    arguments = (f"data.split={file}", "epochs=1", "--method", "supervised", *SMALL)
    trained = protocon("train", "--out", str(tmp_path / "runs"), "--json", *arguments)
    used = json.loads((Path(trained.json["run"]) / "split.json").read_text())
    assert used["labelled"] == drawn["labelled"]


def test_init_starts_from_the_encoder_of_a_run(protocon: Shell, finished_run: dict[str, Any], tmp_path: Path) -> None:
    arguments = ("--labels-per-class", "8", "--out", str(tmp_path), "--json", "epochs=1", *SMALL)
    cold = protocon("train", *arguments, "--method", "supervised").json
    warm = protocon("train", *arguments, "--method", "supervised", "--init", finished_run["run"]).json
    assert warm["test_accuracy_weights"] > cold["test_accuracy_weights"] + 0.2
    done = protocon("train", *arguments, "--init", str(tmp_path / "nowhere.pth"))
    assert done.code == 1
    assert "nowhere.pth does not exist" in done.err


@pytest.mark.parametrize("method", METHODS)
def test_init_gives_any_method_the_encoder_and_nothing_else(
    protocon: Shell, finished_run: dict[str, Any], method: str
) -> None:
    model = Path(finished_run["run"]) / "model.safetensors"
    arguments = ("train", "--labels-per-class", "8", "--method", method, "--dry-run", "--json", *SMALL)
    networks = [
        prepare(validate(protocon(*arguments, *init).json["config"])).network.state_dict()
        for init in ((), ("--init", finished_run["run"]), ("--init", str(model)))
    ]
    saved = {name: tensor for name, tensor in load_file(model).items() if name.startswith("encoder.")}
    assert len(saved) > 20
    for name, tensor in saved.items():
        assert torch.equal(networks[1][name], tensor), name
    assert any(not torch.equal(networks[0][name], tensor) for name, tensor in saved.items())
    for name in networks[0].keys() - saved.keys():
        assert torch.equal(networks[1][name], networks[0][name]), name  # the heads are the seed's
        assert torch.equal(networks[2][name], networks[0][name]), name
    assert all(torch.equal(networks[2][name], tensor) for name, tensor in saved.items())


def test_one_start_for_the_encoder(protocon: Shell, finished_run: dict[str, Any], tmp_path: Path) -> None:
    both = ("--init", finished_run["run"], "--weights", str(tmp_path / "w.pth"))
    done = protocon("train", "--labels-per-class", "8", "--dry-run", *both)
    assert done.code == 1
    assert "give one" in done.err


def test_recipes_are_listed_and_shown(protocon: Shell) -> None:
    listed = protocon("recipes", "--json").json["recipes"]
    assert "paper-cifar10" in listed
    assert all(listed.values())
    assert protocon("recipes", "paper-cifar10", "--json").json["method"]["neighbours"] == 250
    assert "neighbours: 250" in protocon("recipes", "paper-cifar10").out


def test_non_finite_loss_stops_with_its_name(protocon: Shell, tmp_path: Path) -> None:
    arguments = ("--labels-per-class", "2", "--out", str(tmp_path), "epochs=3", "lr=1e30", *SMALL)
    done = protocon("train", *arguments, "--method", "supervised")
    assert done.code == 1
    assert "loss_x" in done.err
    assert "lower optim.lr" in done.err
