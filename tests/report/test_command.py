"""report.html of real runs: made by training, and again by the command."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from protocon.engine.run import fit
from protocon.report import page
from protocon.runs.run_folder import RunFolder
from protocon.settings.config import build_config
from tests.commands import run_command
from tests.engine.layouts import save_class
from tests.engine.runs import small_config, tiny_run
from tests.report.folders import write_run


def test_training_leaves_a_report_and_the_command_makes_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Path(tiny_run(tmp_path / "runs", "epochs=2", "labels_per_class=4", "report=true")["run"])
    made = (run / "report.html").read_text()
    assert "data:image/png" in made  # thumbnails of the training images
    assert "of the test images right from 40 labels" in made
    done = run_command(monkeypatch, capsys, "report", str(run), "--json", "--out", str(tmp_path / "again.html"))
    assert done.code == 0, done.err
    assert done.json["report"] == str(tmp_path / "again.html")
    assert (tmp_path / "again.html").read_text() == made
    many = run_command(monkeypatch, capsys, "report", *[str(run)] * 5, "--out", str(tmp_path / "deep" / "five.html"))
    assert many.code == 0, many.err
    assert "5 runs compared" in (tmp_path / "deep" / "five.html").read_text()


def test_images_that_are_gone_since_appear_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    photos = tmp_path / "photos"
    save_class(photos, 0, 12)
    save_class(photos, 1, 12, first=12)
    (photos / "labels.csv").write_text("file,label\n000.png,red\n001.png,red\n012.png,blue\n013.png,blue\n")
    overrides = ("epochs=1", "image_size=16", "encoder=wrn-10-1", "tensorboard=false", "neighbours=5", "batch_size=4")
    config = build_config(settings={"data": {"name": "folder", "root": photos}}, overrides=overrides)
    run = Path(fit(config, out=tmp_path / "runs", console=Console(quiet=True))["run"])
    assert 'alt="image 003.png"' in (run / "report.html").read_text()
    content = (photos / "003.png").read_bytes()
    (photos / "003.png").write_bytes(content[: len(content) // 2])
    done = run_command(monkeypatch, capsys, "report", str(run))
    assert done.code == 0, done.err
    page = (run / "report.html").read_text()
    assert 'alt="image 003.png"' not in page
    assert "003.png" in page
    assert 'alt="image 004.png"' in page


def test_a_report_that_cannot_be_drawn_does_not_lose_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> str:
        raise ZeroDivisionError("no ink")

    monkeypatch.setattr(page, "build_page", fail)
    console = Console(record=True, file=io.StringIO(), width=300)
    config = small_config("epochs=1", "report=true", method="supervised")
    run = Path(fit(config, out=tmp_path / "runs", console=console)["run"])
    assert RunFolder(run).finished()
    assert not (run / "report.html").exists()
    said = console.export_text()
    assert "no ink" in said
    assert f"protocon report {run}" in said


def test_what_is_no_run_is_a_clear_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    write_run(tmp_path / "run", ("a", "b"), None, epochs=1, clusters=False)
    blocked = run_command(monkeypatch, capsys, "report", str(tmp_path / "run"), "--out", str(tmp_path / "file" / "x"))
    assert blocked.code == 1
    assert "cannot create the folder" in blocked.err
    done = run_command(monkeypatch, capsys, "report", str(tmp_path))
    assert done.code == 1
    assert "is not a run folder" in done.err
    assert "Traceback" not in done.err
