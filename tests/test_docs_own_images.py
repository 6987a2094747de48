"""Every command of docs/own-images.md is run."""

import shlex
import shutil
from pathlib import Path

import numpy as np
import pytest

from tests.commands import run_command
from tests.engine.layouts import embeddings, folder, save_class
from tests.engine.photos import install, make_package
from tests.test_docs_examples import blocks

PAGE = "own-images.md"


def commands() -> list[str]:
    lines = [line for text in blocks(PAGE, "console") for line in text.splitlines()]
    return [line for line in lines if line.strip()]


def prepare(place: Path) -> None:
    """The files that the page speaks of."""
    (place / "photos").mkdir()
    folder(place / "photos")
    shutil.copy(place / "photos" / "labels.csv", place / "some-labels.csv")
    shutil.make_archive(str(place / "photos"), "zip", place, "photos")
    for label, name in enumerate(("cat", "dog")):
        save_class(place / "sorted" / name, label, 8)
    embeddings(place)
    content = dict(np.load(place / "set.npz"))
    np.savez(place / "labelled.npz", **content)
    (place / "set.npz").unlink()


def test_every_line_is_a_command_of_ours() -> None:
    assert len(commands()) >= 10
    assert all(line.startswith("protocon ") for line in commands())


@pytest.mark.parametrize("command", commands())
def test_the_command_runs(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    prepare(tmp_path)
    rows = np.load(tmp_path / "labelled.npz")
    names = np.array([f"row {number}" for number in range(len(rows["x"]))])
    if "ids-and-labels" in command:
        np.savez(tmp_path / "embeddings.npz", x=rows["x"], ids=names)
        (tmp_path / "ids-and-labels.csv").write_text("id,label\nrow 0,a\nrow 1,a\nrow 20,b\nrow 21,b\n")
    else:
        np.savez(tmp_path / "embeddings.npz", **rows, ids=names)
    make_package(tmp_path / "packages")
    install(tmp_path / "packages", monkeypatch)  # the installed encoder takes minutes for all of them
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    arguments = shlex.split(command)[1:]
    if arguments[0] == "train":  # as printed, only shorter
        arguments = ["10s" if text == "20m" else text for text in arguments]
        arguments += ["run.tensorboard=false", "run.report=false", "optim.batch_size=8", "--json"]
        if "--time-budget" not in arguments:
            arguments.append("optim.epochs=2")
    done = run_command(monkeypatch, capsys, *arguments)
    assert done.code == 0, done.err
    if arguments[0] == "train":
        run = Path(done.json["run"])
        assert (run / "data.json").is_file()
        assert done.json["epochs"] == 2 or "--time-budget" in arguments
        if "embeddings.npz" in arguments:
            assert "row 30" in (run / "labels.csv").read_text(encoding="utf-8")


def test_the_example_labels_are_read(tmp_path: Path) -> None:
    from protocon.data.labels.label_file import read_label_table

    (text,) = blocks(PAGE, "csv")
    (tmp_path / "labels.csv").write_text(text)
    table = read_label_table(tmp_path / "labels.csv")
    assert [row.file for row in table.rows] == ["IMG_0001.jpg", "holiday/cat, asleep.jpg", "IMG_0007.jpg"]
    assert table.problems == []
