"""`data check` and `train` on a folder of one's own, with everything in it that such folders have."""

import json
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from tests.commands import Finished, run_command
from tests.engine.layouts import TEST, TRAIN, hugging_face, metadata, pictures, save_class
from tests.hostile import GOOD, ODD, SKIPPED, WARNINGS, every_file, write_hostile

QUICK = ("--from-scratch", "optim.mu=3", "network.projection_dim=8", "run.tensorboard=false", "run.report=false")


class Shell:
    """`protocon …` in this process."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.fixtures = (monkeypatch, capsys)

    def __call__(self, *arguments: str) -> Finished:
        return run_command(*self.fixtures, *arguments)


@pytest.fixture
def protocon(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    monkeypatch.setenv("COLUMNS", "300")
    return Shell(monkeypatch, capsys)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("own") / "my photos"
    write_hostile(root)
    return root


def one_line(text: str) -> str:
    return text.replace("\n", "\\n")


def accounted(content: dict[str, Any]) -> list[str]:
    used = content["used"]
    return [
        *(row["file"] for row in used["labelled"]),
        *used["unlabelled"],
        *used["test"],
        *(row["file"] for row in content["skipped"]),
    ]


def test_check_accounts_for_every_file(protocon: Shell, hostile: Path) -> None:
    done = protocon("data", "check", str(hostile), "--json", *QUICK)
    assert done.code == 0, done.err
    found = done.json
    assert found["ok"] is True
    assert sorted(accounted(found)) == sorted(every_file(hostile))
    assert found["files"]["found"] == len(every_file(hostile))
    reasons = {row["file"]: row["reason"] for row in found["skipped"]}
    assert reasons.keys() == SKIPPED.keys()
    for name, reason in SKIPPED.items():
        assert reason in reasons[name]
    warnings = "\n".join(found["warnings"])
    for text in (*WARNINGS, *(f"{name} {'is an ' if 'gif' in name else ''}" for name in ODD), *ODD.values()):
        assert text in warnings
    assert all(line.isprintable() for line in found["warnings"])
    labelled = {row["file"]: row["label"] for row in found["used"]["labelled"]}
    unlabelled = set(found["used"]["unlabelled"])
    assert {"001.png", *list(GOOD)[4:]} <= unlabelled
    assert {name: labelled[name] for name in list(GOOD)[:4]} == {
        name: ("red", "blue")[label] for name, label in list(GOOD.items())[:4]
    }


def test_check_finds_duplicates_and_describes_the_images(protocon: Shell, hostile: Path) -> None:
    found = protocon("data", "check", str(hostile), "--json", *QUICK).json
    groups = {tuple(sorted(copy["file"] for copy in group["copies"])): group["kind"] for group in found["duplicates"]}
    assert groups == {("000.png", "copy of 000.png"): "same bytes", ("100.png", "copy of 100.bmp"): "same pixels"}
    assert any("copy of 000.png" in line and "some are labelled and some are not" in line for line in found["warnings"])
    assert found["images"]["formats"]["GIF"] == found["images"]["formats"]["BMP"] == 1
    assert found["images"]["sizes"]["width"] == {
        "least": 1,
        "quarter": 16,
        "median": 16,
        "three quarters": 16,
        "most": 12_000,
    }
    training = found["training"]
    assert training["chosen"]["network.encoder"].startswith("wrn-10-1")
    assert training["sizes"]["labelled"] == 7
    assert "MiB" in training["memory"]["total"]
    assert "measured" in training["time"]


def test_check_is_readable(protocon: Shell, hostile: Path) -> None:
    done = protocon("data", "check", str(hostile), "--labels", str(hostile / "labels.csv"), *QUICK)
    assert done.code == 0
    assert "read as folder (labels in labels.csv)" in done.out
    for text in (*SKIPPED, *SKIPPED.values(), *WARNINGS, *ODD.values(), "training is possible", "MiB of memory"):
        assert one_line(text) in done.out
    assert "same bytes" in done.out
    assert "optim.epochs" not in done.out  # settings are for those who ask
    command = shlex.join(["protocon", "train", str(hostile), "--labels", str(hostile / "labels.csv"), *QUICK])
    assert done.out.endswith(f"training is possible:\n  {command}\n")
    for heading in ("labels known", "test images"):  # the same as `labelled`, and nothing but zeros
        assert heading not in done.out
    asked = protocon("data", "check", str(hostile), "--verbose", *QUICK)
    assert "optim.epochs" in asked.out
    assert asked.out.endswith(f"{shlex.join(['protocon', 'train', str(hostile), *QUICK])}\n")


def test_check_of_photos_alike_says_their_size_in_a_line(protocon: Shell, tmp_path: Path) -> None:
    for label, name in enumerate(("red", "blue")):
        save_class(tmp_path / "train" / name, label, 4)
        save_class(tmp_path / "test" / name, label, 2)
    done = protocon("data", "check", str(tmp_path), "--labels-per-class", "2", *QUICK)
    assert done.code == 0, done.err
    assert "all images are 16 × 16 pixels\n12 PNG\n" in done.out
    assert "4 labelled, 4 unlabelled, 4 test images" in done.out
    for heading in ("labels known", "test images"):
        assert heading in done.out.partition("4 labelled")[0]


def test_train_goes_on_and_says_the_same(protocon: Shell, hostile: Path, tmp_path: Path) -> None:
    done = protocon("train", str(hostile), "--epochs", "2", "--out", str(tmp_path), "--json", "--verbose", *QUICK)
    assert done.code == 0, done.err
    for text in (*SKIPPED, *SKIPPED.values(), *WARNINGS, *ODD.values(), "network.encoder: wrn-10-1"):
        assert one_line(text) in done.err
    run = Path(done.json["run"])
    assert run.name == "my-photos-labels-protocon-seed0"
    record = json.loads((run / "data.json").read_text())
    assert sorted(accounted(record)) == sorted(every_file(hostile))
    assert record["auto"]["network.encoder"].startswith("wrn-10-1")
    assert record["counts"] == {"labelled": 7, "unlabelled": done.json["unlabelled"], "test": 0}
    checked = protocon("data", "check", str(hostile), "--json", *QUICK).json
    assert (record["skipped"], record["used"]) == (checked["skipped"], checked["used"])
    written = (run / "labels.csv").read_text(encoding="utf-8", errors="surrogateescape")
    assert all(name.replace('"', '""') in written for name in GOOD)
    assert '"two\nlines.png"' in written
    assert '"comma, name.png"' in written


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("000.png,red\n001.png,red\n", "names 1 class (red); expected at least two"),
        ("", "labels.csv is empty"),
        ("a.png,red\nb.png,blue\n", "none of its 2 rows names one of the"),
        ("truncated.jpg,red\n000.png,blue\n", "only 1 class has labelled images that can be decoded"),
    ],
)
def test_labels_that_cannot_be_trained_on(
    protocon: Shell, hostile: Path, tmp_path: Path, text: str, message: str
) -> None:
    labels = tmp_path / "labels.csv"
    labels.write_text(text)
    done = protocon("data", "check", str(hostile), "--labels", str(labels), "--json")
    assert done.code == 1
    assert done.json["ok"] is False
    assert message in done.json["errors"][0]
    listed = {row["file"] for row in done.json["skipped"]} | set(done.json["unused_images"])
    assert listed == every_file(hostile)
    shown = protocon("data", "check", str(hostile), "--labels", str(labels))
    assert shown.code == 1
    assert "training is not possible" in shown.out
    trained = protocon("train", str(hostile), "--labels", str(labels), "--out", str(tmp_path / "runs"))
    assert trained.code == 1
    assert message in trained.err
    assert not (tmp_path / "runs").exists()


def test_check_of_nothing_is_one_json_object(protocon: Shell, tmp_path: Path) -> None:
    done = protocon("data", "check", str(tmp_path), "--json")
    assert (done.code, done.json["ok"]) == (1, False)
    assert "has no images" in done.json["errors"][0]


def test_check_tells_a_leak_into_the_test_set(protocon: Shell, tmp_path: Path) -> None:
    for label, name in enumerate(("red", "blue")):
        save_class(tmp_path / "train" / name, label, TRAIN)
        save_class(tmp_path / "test" / name, label, TEST, first=50)
    (tmp_path / "test" / "red" / "leak.png").write_bytes((tmp_path / "train" / "blue" / "000.png").read_bytes())
    found = protocon("data", "check", str(tmp_path), "--json", "--labels-per-class", "2", *QUICK).json
    warnings = "\n".join(found["warnings"])
    assert "the test accuracy will be too high" in warnings
    assert "they have different labels: blue, red" in warnings
    assert found["recognised"].endswith("read as imagefolder (2 class folders: blue, red)")


@pytest.mark.parametrize("write", [metadata, hugging_face])
def test_folders_as_hugging_face_writes_them(protocon: Shell, tmp_path: Path, write: Any) -> None:
    root = tmp_path / "photos"
    root.mkdir()
    write(root)
    place = root / "saved" if (root / "saved").exists() else root
    arguments = ("--labels-per-class", "2", "--epochs", "2", "--image-size", "16", "--encoder", "wrn-10-1", *QUICK)
    done = protocon("train", str(place), "--out", str(tmp_path / "runs"), "--json", *arguments)
    assert done.code == 0, done.err
    assert done.json["labelled"] == 4
    assert done.json["test_accuracy"] is not None
    if write is hugging_face:
        named = protocon("train", "--data", f"hf:{place}", "--out", str(tmp_path / "runs"), "--json", *arguments)
        assert named.json["test_accuracy"] == done.json["test_accuracy"]


def test_comfortable_options_are_settings(protocon: Shell, hostile: Path, tmp_path: Path) -> None:
    arguments = (
        "--encoder",
        "wrn-10-1",
        "--image-size",
        "12",
        "--epochs",
        "3",
        "--from-scratch",
        "--dry-run",
        "--json",
    )
    config = protocon("train", str(hostile), *arguments).json["config"]
    assert (config["network"]["encoder"], config["network"]["frozen"]) == ("wrn-10-1", False)
    assert (config["data"]["image_size"], config["optim"]["epochs"]) == (12, 3)
    assert config["data"]["name"] == "folder"
    refused = protocon("train", str(hostile), "--weights", str(tmp_path / "none.pth"))
    assert refused.code == 1
    assert "none.pth" in refused.err
    both = protocon("train", str(hostile), "--epochs", "3", "--time-budget", "5m")
    assert both.code == 1
    assert "give one of them" in both.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "nowhere"], "'nowhere' is neither a setting"),
        (["train", "HERE", "HERE"], "2 folders or files are given"),
        (["train", "HEREE"], "did you mean HERE?"),
        (["train", "HERE", "HERE/labels.csv"], "a table of labels is given with --labels HERE/labels.csv"),
        (
            ["train", *["HERE/000.png"] * 9],
            "9 folders or files are given (HERE/000.png, HERE/000.png, HERE/000.png, …)",
        ),
        (["train", "--labels", "labels.csv"], "name their folder, as in `train photos/ --labels labels.csv`"),
        (["train", "HERE", "--root", "HERE"], "leave one out"),
        (["train", "HERE", "--data", "hf:x"], "names all that is needed"),
        (["train", "HERE", "--time-budget", "soon"], "not a length of time"),
        (["compare", "nowhere"], "'nowhere' is neither a setting"),
        (["split", "out.json", "nowhere"], "'nowhere' is neither a setting"),
    ],
)
def test_inputs_that_contradict_each_other(protocon: Shell, hostile: Path, arguments: list[str], message: str) -> None:
    done = protocon(*(text.replace("HERE", str(hostile)) for text in arguments))
    assert done.code == 1
    assert message.replace("HERE", str(hostile)) in done.err


def test_split_and_compare_take_folders_too(protocon: Shell, tmp_path: Path) -> None:
    for label, name in enumerate(("red", "blue")):
        save_class(tmp_path / "photos" / "train" / name, label, TRAIN)
        save_class(tmp_path / "photos" / "test" / name, label, TEST, first=50)
    photos = str(tmp_path / "photos")
    drawn = protocon("split", str(tmp_path / "split.json"), photos, "--labels-per-class", "3", "--json")
    assert drawn.json["labelled"] == 6
    grid = (
        "--methods",
        "logistic-regression",
        "--labels-per-class",
        "2",
        "--seeds",
        "1",
        "--out",
        str(tmp_path / "grid"),
        "--from-scratch",
    )
    done = protocon("compare", photos, *grid, "--json")
    assert done.code == 0, done.err
    assert yaml.safe_load((tmp_path / "grid" / "grid.yaml").read_text())["data"]["name"] == "imagefolder"


def test_large_images_become_what_a_cpu_can_train(protocon: Shell, tmp_path: Path) -> None:
    images, labels = pictures(6, 48)
    np.savez(tmp_path / "set.npz", x=images, y=np.where(np.arange(12) % 6 < 2, labels, -1))
    arguments = (str(tmp_path / "set.npz"), "--dry-run", "--json", "run.accelerator=cpu", "--from-scratch")
    plan = protocon("train", *arguments).json
    assert (plan["config"]["data"]["image_size"], plan["config"]["network"]["encoder"]) == (32, "wrn-10-2")
    assert "on a CPU" in plan["chosen"]["data.image_size"]
    asked = protocon("train", *arguments, "--image-size", "48").json
    assert asked["config"]["data"]["image_size"] == 48


def test_a_dry_run_fits_epochs_to_a_budget_too(protocon: Shell, hostile: Path) -> None:
    arguments = ("train", str(hostile), "--dry-run", "--json", "run.accelerator=cpu", *QUICK)
    usual = protocon(*arguments).json["sizes"]["epochs"]
    plan = protocon(*arguments, "--time-budget", "40s").json
    assert plan["chosen"]["optim.epochs"].startswith(f"{plan['sizes']['epochs']} (")
    assert "per step" in plan["chosen"]["optim.epochs"]
    assert plan["sizes"]["epochs"] != usual
