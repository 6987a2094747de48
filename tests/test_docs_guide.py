"""Every command and program of the guide, the tutorial and the README on one's own images is run, only on less."""

import json
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from protocon.data.sources.fashion_mnist import DEBIAN_FOLDER
from tests.commands import run_command
from tests.engine.photos import install, make_package
from tests.test_docs_examples import DOCS, blocks

GUIDE, TUTORIAL = "guide.md", "tutorial-fashion-mnist.md"


def steps(page: str) -> list[tuple[str, str]]:
    """Commands and programs of a page in their order, as (language, text)."""
    text = (DOCS / page).read_text(encoding="utf-8")
    found = re.findall(r"^```(console|python)\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
    ordered: list[tuple[str, str]] = []
    for language, block in found:
        ordered += [(language, block)] if language == "python" else [(language, line) for line in block.splitlines()]
    return ordered


def shorter(arguments: list[str]) -> list[str]:
    """A command as printed, but for two epochs of small images; `train` and `compare` take minutes otherwise."""
    if arguments[0] != "train":
        return arguments
    kept = list(arguments)
    for option in ("--time-budget", "--epochs", "--image-size"):
        if option in kept:
            place = kept.index(option)
            del kept[place : place + 2]
    return [*kept, "optim.epochs=2", "data.image_size=8", "run.tensorboard=false", "optim.batch_size=8"]


def walk(
    page: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    *,
    names: dict[str, Any],
    less: dict[str, str] | None = None,
) -> list[str]:
    """Run a page from top to bottom, with `less` in the place of some words; returns what the programs printed."""
    printed = []
    for language, text in steps(page):
        if language == "python":
            capsys.readouterr()
            for large, small in (less or {}).items():
                text = text.replace(large, small)
            exec(text, names)
            printed.append(capsys.readouterr().out)
            continue
        assert text.startswith("protocon "), text
        done = run_command(monkeypatch, capsys, *shorter(shlex.split(text)[1:]))
        assert done.code == 0, f"{text}\n{done.err}"
    return printed


@pytest.fixture(autouse=True)
def _tiny_encoder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed encoder that takes no time; features do not go into the user's cache folder."""
    make_package(tmp_path / "packages")
    install(tmp_path / "packages", monkeypatch)
    monkeypatch.setattr("protocon.engine.setup.encode.default_cache", lambda: tmp_path / "cache")


def photographs(place: Path) -> None:
    """Cats are dark and dogs are bright; three of each have a label."""
    (place / "photos").mkdir()
    (place / "new-photos").mkdir()
    for name, level in (("cat", 20), ("dog", 240)):
        (place / "more-photos" / name).mkdir(parents=True)
        Image.new("RGB", (20, 20), (level, level, level)).save(place / "more-photos" / name / "1.png")
    rows = ["file,label"]
    for number in range(40):
        bright = number % 2
        pixels = np.random.default_rng(number).integers(0, 100, (12, 12, 3), dtype=np.uint8) + 150 * bright
        Image.fromarray(pixels.astype(np.uint8)).save(place / "photos" / f"{number:02}.jpg")
        if number < 16:
            rows.append(f"{number:02}.jpg,{('cat', 'dog')[bright]}")
    (place / "photos" / "labels.csv").write_text("\n".join(rows) + "\n")
    Image.new("RGB", (30, 20), (240, 240, 240)).save(place / "new-photos" / "one.jpg")
    Image.new("RGB", (20, 30), (20, 20, 20)).save(place / "new-photos" / "two.png")


def test_the_guide_from_top_to_bottom(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    photographs(tmp_path)
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    served, learnt = walk(GUIDE, monkeypatch, capsys, names=names)
    assert len([text for language, text in steps(GUIDE) if language == "console"]) >= 9
    assert re.fullmatch(r"\['(cat|dog)', '(cat|dog)'\]\n", served)
    assert len(re.findall(r"\d", learnt)) == 15
    for file in ("new-labels.csv", "photos.onnx", "photos.pt", "photos.safetensors", "digits.safetensors"):
        assert Path(file).is_file()
    assert len(Path("new-labels.csv").read_text().splitlines()) == 3


def test_the_readme_on_ones_own_images(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    photographs(tmp_path)
    monkeypatch.chdir(tmp_path)
    text = (DOCS.parent / "README.md").read_text(encoding="utf-8")
    section = text.split("## Your own images\n")[1].split("\n## ")[0]
    commands = re.findall(r"^protocon (.+)$", section, flags=re.MULTILINE)
    assert [command.split()[0] for command in commands] == ["data", "train", "audit", "predict", "export"]
    for command in commands:
        done = run_command(monkeypatch, capsys, *shorter(shlex.split(command)))
        assert done.code == 0, f"{command}\n{done.err}"
    assert len(list(Path("runs").glob("*/cross_check.csv"))) == 1
    assert Path("photos.onnx").is_file()


def test_the_first_hour_of_the_readme(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its commands as printed: train, correct a label in the run's own table, train again, sort into class folders."""
    photographs(tmp_path)
    Path(tmp_path / "photos" / "labels.csv").rename(tmp_path / "labels.csv")
    for number in range(40):
        (tmp_path / "photos" / f"{number:02}.jpg").rename(tmp_path / "photos" / f"IMG_{number:04}.jpg")
    rows = [f"IMG_00{line}" for line in (tmp_path / "labels.csv").read_text().splitlines()[1:]]
    rows[12] = rows[12].replace("cat", "dog")
    (tmp_path / "labels.csv").write_text("file,label\n" + "\n".join(rows))
    monkeypatch.chdir(tmp_path)
    text = (DOCS.parent / "README.md").read_text(encoding="utf-8").split("## The first hour\n")[1].split("\n## ")[0]
    lines = text.split("```text\n")[1].split("```")[0].splitlines()
    assert len(lines) <= 10
    for line in lines[1:]:
        command = line.split("      #")[0].replace(",bag/", ",dog/").replace(",sandal/", ",cat/")
        if command.startswith("protocon "):
            done = run_command(monkeypatch, capsys, *shorter(shlex.split(command)[1:]))
            assert done.code == 0, f"{command}\n{done.err}"
        elif command.startswith("sed "):
            subprocess.run(command, shell=True, check=True)
        else:
            assert Path(shlex.split(command)[1]).is_file()
    again = json.loads(next(Path("runs").glob("*-2")).joinpath("data.json").read_text())
    assert {"file": "IMG_0012.jpg", "label": "cat"} in again["used"]["labelled"]
    assert list(Path("sorted").glob("cat/IMG_0012*"))


def test_the_labels_of_the_guide_are_read(tmp_path: Path) -> None:
    from protocon.data.labels.label_file import read_label_table

    (text,) = blocks(GUIDE, "csv")
    (tmp_path / "labels.csv").write_text(text)
    assert read_label_table(tmp_path / "labels.csv").problems == []


@pytest.mark.skipif(not DEBIAN_FOLDER.is_dir(), reason="Debian's dataset-fashion-mnist is not installed")
def test_the_tutorial_from_top_to_bottom(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With 120 images instead of 1,500 and 20 new ones instead of 500."""
    monkeypatch.chdir(tmp_path)
    less = {"COUNT = 1500": "COUNT = 120", "NEW = 500": "NEW = 20"}
    printed = walk(TUTORIAL, monkeypatch, capsys, names={}, less=less)
    assert len(list(Path("clothes").glob("*.png"))) == 120
    assert any(re.search(r"\d+\.\d %", output) for output in printed)
