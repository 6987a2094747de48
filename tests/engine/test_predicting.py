"""Predicting files: every file gets a row in order, memory stays bounded, and nothing unreadable goes unsaid."""

import csv
import json
import os
import sys
import zipfile
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from sklearn.datasets import load_digits

from protocon import load_run
from protocon.cli import main
from protocon.data.files.decode import decode_image
from protocon.export.formats import to_safetensors
from protocon.networks.encoders import build_encoder
from protocon.networks.network import Network
from protocon.runs import predict_files as predicting
from protocon.runs.predict_files import batch_rows, predict_rows
from protocon.runs.trained import TrainedRun
from protocon.settings.auto import resolve_auto
from protocon.settings.config import build_config
from tests.commands import Finished, run_command


def untrained(shape: tuple[int, ...], encoder: str, *overrides: str) -> TrainedRun:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        mean, std = [0.5] * shape[0], [0.25] * shape[0]
        network = Network(build_encoder(encoder, input_shape=shape), classes=3, projection_dim=8, mean=mean, std=std)
    asked = build_config(overrides=[f"encoder={encoder}", "projection_dim=8", *overrides])
    config = resolve_auto(asked, shape=shape, flip=True, unlabelled=99, classes=3).config
    return TrainedRun(network.eval(), config, ("zero", "one", "two"), shape)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("model") / "model.safetensors"
    file.write_bytes(to_safetensors(untrained((1, 8, 8), "wrn-10-1", "eval_batch_size=4")))
    return file


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """Nine images in nested folders, with names that shells and patterns trip over, and what does not belong."""
    folder = tmp_path / "my [photos]"
    digits = load_digits().images
    names = ("a.png", "b*.png", "c [1].png", "d?.png", "sub/e.png", "sub/f g.png", "sub/deep/h.png", "é.png", "-i.png")
    for number, name in enumerate(names):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray((digits[number] * 15.9375).astype(np.uint8)).save(folder / name)
    (folder / "notes.txt").write_text("no image")
    (folder / ".hidden.png").write_text("system")
    return folder


def command(model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *rest: str) -> Finished:
    return run_command(monkeypatch, capsys, "predict", str(model), *rest)


def test_folders_are_searched_to_the_bottom(model: Path, photos: Path) -> None:
    rows = load_run(model).predict_files([photos])
    assert [Path(row["file"]).relative_to(photos).as_posix() for row in rows] == sorted(
        ["a.png", "b*.png", "c [1].png", "d?.png", "sub/e.png", "sub/f g.png", "sub/deep/h.png", "é.png", "-i.png"]
    )
    assert {row["label"] for row in rows} <= {"zero", "one", "two"}
    assert all(sum(row["top"].values()) == pytest.approx(1, abs=1e-3) for row in rows)


def test_same_decode_and_same_answer_as_the_network(model: Path, photos: Path) -> None:
    run = load_run(model)
    with (photos / "a.png").open("rb") as file:
        pixels = decode_image(file, size=8, name="a.png", grey=True)
    probs = run.predict_proba(pixels[None])[0]
    (row,) = predict_rows(run, [photos / "a.png"], probabilities=True)
    assert list(row["probabilities"].values()) == pytest.approx(probs.tolist(), abs=1e-5)
    assert row["label"] == run.class_names[int(probs.argmax())]


def test_answers_do_not_depend_on_the_batch(model: Path, photos: Path) -> None:
    run = load_run(model)
    together = {row["file"]: row["confidence"] for row in run.predict_files([photos])}
    alone = {name: run.predict_files([name])[0]["confidence"] for name in together}
    assert together == pytest.approx(alone, abs=2e-4)
    assert batch_rows(run) == 4  # so that nine files were three batches


def test_never_more_than_a_batch_is_decoded(model: Path, photos: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    decoded: list[str] = []

    def watched(file: Any, *, name: str, **manner: Any) -> torch.Tensor:
        decoded.append(name)
        return decode_image(file, name=name, **manner)

    monkeypatch.setattr(predicting, "decode_image", watched)
    rows = predict_rows(load_run(model), [photos])
    next(rows)
    assert len(decoded) == 4
    assert sum(1 for _ in rows) == 8
    assert len(decoded) == 9


def test_large_images_make_small_batches() -> None:
    assert batch_rows(untrained((3, 1024, 1024), "wrn-10-1")) == 5
    assert batch_rows(untrained((3, 16, 16), "wrn-10-1")) == 512


def test_names_are_literal_and_patterns_work(model: Path, photos: Path) -> None:
    run = load_run(model)
    literal = run.predict_files([photos / "b*.png", photos / "c [1].png"])
    assert [row["file"] for row in literal] == [str(photos / "b*.png"), str(photos / "c [1].png")]
    pattern = os.path.join(str(photos).replace("[", "[[]", 1), "sub", "*.png")  # noqa: PTH118
    assert [Path(row["file"]).name for row in run.predict_files([pattern])] == ["e.png", "f g.png"]
    (row,) = run.predict_files([photos / "nothing*.png"])
    assert "does not exist" in row["error"]


def test_zip_archives(model: Path, photos: Path, tmp_path: Path) -> None:
    archive = tmp_path / "photos.zip"
    with zipfile.ZipFile(archive, "w") as out:
        out.write(photos / "a.png", "x/a.png")
        out.write(photos / "sub/e.png", "x/y/e.png")
    rows = load_run(model).predict_files([archive])
    assert [row["file"] for row in rows] == [f"{archive}:a.png", f"{archive}:y/e.png"]
    assert rows[0]["confidence"] == load_run(model).predict_files([photos / "a.png"])[0]["confidence"]


def test_unreadable_files_have_a_row_and_exit_code_1(
    model: Path, photos: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (photos / "broken.png").write_text("no image")
    (photos / "empty.png").touch()
    (photos / "gone.png").symlink_to("nowhere")
    done = command(model, monkeypatch, capsys, str(photos), "--json")
    assert done.code == 1
    errors = {Path(row["file"]).name: row["error"] for row in done.json["predictions"] if "error" in row}
    assert set(errors) == {"broken.png", "empty.png", "gone.png"}
    assert len(done.json["predictions"]) == 12
    assert "9 labelled, 3 cannot be read" in done.err
    done = command(model, monkeypatch, capsys, str(photos / "notes.txt"))  # asked for by name: an error, not silence
    assert done.code == 1
    assert "notes.txt" in done.out


def test_csv_and_json_files(
    model: Path, photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (photos / "broken, or not.png").write_text("no image")
    table, tree = tmp_path / "labels.csv", tmp_path / "labels.json"
    done = command(model, monkeypatch, capsys, str(photos), "--out", str(table), "--probabilities")
    assert (done.code, done.out) == (1, "")
    rows = list(csv.DictReader(StringIO(table.read_text(encoding="utf-8"))))
    assert len(rows) == 10
    good = [row for row in rows if not row["error"]]
    assert len(good) == 9
    for row in good:
        shares = [float(row[f"p({name})"]) for name in ("zero", "one", "two")]
        assert sum(shares) == pytest.approx(1, abs=1e-4)
        assert max(shares) == pytest.approx(float(row["confidence"]), abs=1e-4)
    assert command(model, monkeypatch, capsys, str(photos), "--out", str(tree)).code == 1
    found = json.loads(tree.read_text(encoding="utf-8"))["predictions"]
    assert [row["file"] for row in found] == [row["file"] for row in rows]
    before = table.read_bytes()
    again = command(model, monkeypatch, capsys, str(photos), "--out", str(table))
    assert again.code == 1
    assert "exists already" in again.err
    assert table.read_bytes() == before
    assert not list(tmp_path.glob(".*"))


def test_format_on_standard_output(
    model: Path, photos: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    done = command(model, monkeypatch, capsys, str(photos / "a.png"), "--format", "csv")
    assert done.code == 0
    assert done.out.splitlines()[0] == "file,label,confidence,triage,error"
    assert len(done.out.splitlines()) == 2
    done = command(model, monkeypatch, capsys, str(photos / "a.png"), "--format", "xml")
    assert done.code == 1
    assert "csv, json, text" in done.err


def test_a_list_on_standard_input(
    model: Path, photos: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    names = [str(photos / "a.png"), str(photos / "c [1].png")]
    for text in ("\n".join(names) + "\n", "\0".join(names) + "\0"):
        monkeypatch.setattr(sys, "stdin", StringIO(text))
        done = command(model, monkeypatch, capsys, "-", "--json")
        assert [row["file"] for row in done.json["predictions"]] == names


def test_an_empty_folder_is_no_success(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty").mkdir()
    done = command(model, monkeypatch, capsys, str(tmp_path / "empty"))
    assert done.code == 1
    assert "0 labelled" in done.err


def test_embeddings_come_from_arrays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    model = tmp_path / "model.safetensors"
    model.write_bytes(to_safetensors(untrained((6,), "mlp-16", "eval_batch_size=4")))
    features = np.random.default_rng(0).normal(size=(9, 6))
    features[5, 0] = np.nan
    np.save(tmp_path / "x.npy", features)
    np.savez(tmp_path / "x.npz", x_test=features[:2], y_test=[0, 1])
    done = command(model, monkeypatch, capsys, str(tmp_path / "x.npy"), str(tmp_path / "x.npz"), "--json")
    assert done.code == 1
    rows = done.json["predictions"]
    assert [row["file"] for row in rows] == [
        *(f"{tmp_path / 'x.npy'}:{n}" for n in range(9)),
        *(f"{tmp_path / 'x.npz'}:{n}" for n in range(2)),
    ]
    assert [n for n, row in enumerate(rows) if "error" in row] == [5]
    assert rows[9]["confidence"] == rows[0]["confidence"]
    expected = load_run(model).predict_proba(torch.from_numpy(features[8:].astype(np.float32)))[0]
    assert rows[8]["confidence"] == pytest.approx(float(expected.max()), abs=1e-4)
    np.save(tmp_path / "short.npy", features[:, :5])
    for wrong, message in (("short.npy", r"(N, 6)"), ("photo.png", "embeddings"), ("none.npy", "none.npy")):
        done = command(model, monkeypatch, capsys, str(tmp_path / wrong), "--json")
        assert done.code == 1
        assert message in done.json["predictions"][0]["error"]


class Terminal(StringIO):
    """Standard output and error in one window."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("file_format", ["text", "csv", "json"])
def test_the_bar_is_wiped_away_before_results_are_printed(
    model: Path, photos: Path, monkeypatch: pytest.MonkeyPatch, file_format: str
) -> None:
    window = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stdout", window)
    monkeypatch.setattr(sys, "stderr", window)
    monkeypatch.setattr(sys, "argv", ["protocon", "predict", str(model), str(photos), "--format", file_format])
    with pytest.raises(SystemExit) as stop:
        main()
    assert not stop.value.code
    bar, wiped, results = window.getvalue().rpartition("\x1b[2K")
    assert wiped
    assert "labelling" in bar
    assert "labelling" not in results
    begin = {"text": f"{photos}/", "csv": "file,label,", "json": '{"run": '}[file_format]
    assert results.startswith(begin)
    assert results.count(".png") == 9
