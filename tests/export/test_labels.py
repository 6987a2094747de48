"""Accepted labels for other programs, opened by the program where it is installed."""

import gc
import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from protocon.data.registry import DATASETS
from protocon.data.source_options import SourceOptions
from protocon.errors import RunError
from protocon.export.label_formats import export_labels
from protocon.report.outcome import triage_rule
from tests.commands import run_command
from tests.engine.layouts import save_class
from tests.report.folders import label, write_json, write_run

NAMES = ("red & <hot>", "../blue")
TAKEN = {"000.png": NAMES[0], "001.png": NAMES[0], "sub/000.png": NAMES[1], "sub/001.png": NAMES[1]}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    photos = tmp_path / "photos"
    save_class(photos, 0, 3)
    save_class(photos / "sub", 1, 3)
    rows = [label(name, name_of, 0.97) for name, name_of in TAKEN.items()]
    rows[0] |= {"given": NAMES[0], "split": "labelled"}
    rows.append(label("002.png", NAMES[1], 0.5, triage="review", review_rank="1"))
    rows.append(label("sub/002.png", NAMES[1], 0.99, triage="unchecked"))
    run = write_run(tmp_path / "run", NAMES, rows, truth=False, test=False)
    write_json(run / "data.json", {"data": "folder", "root": str(photos)})
    return run


def test_class_folders_are_read_back_with_the_same_labels(run: Path, tmp_path: Path) -> None:
    result = export_labels(run, file_format="folders", out=tmp_path / "sorted")
    assert (result["images"], result["given"], result["left_out"], result["unchecked"]) == (4, 1, 2, 1)
    made = sorted(path.relative_to(tmp_path / "sorted").as_posix() for path in (tmp_path / "sorted").rglob("*.png"))
    assert made == ["_blue/sub__000.png", "_blue/sub__001.png", "red & _hot_/000.png", "red & _hot_/001.png"]
    bundle = DATASETS["imagefolder"](SourceOptions(root=tmp_path / "sorted"))
    assert len(bundle.train) == 4
    with pytest.raises(RunError, match="exists already"):
        export_labels(run, file_format="folders", out=tmp_path / "sorted")


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_hugging_face_reads_its_metadata(run: Path, tmp_path: Path) -> None:
    export_labels(run, file_format="huggingface", out=tmp_path / "hf")
    datasets = pytest.importorskip("datasets")
    cache = str(tmp_path / "cache")
    found = datasets.load_dataset("imagefolder", data_dir=str(tmp_path / "hf"), split="train", cache_dir=cache)
    assert sorted(found["label"]) == sorted(TAKEN.values())
    assert found[0]["image"].size == (16, 16)
    del found
    gc.collect()  # datasets leaves the table's file open until then


def test_label_studio_gets_annotations_and_predictions(run: Path, tmp_path: Path) -> None:
    export_labels(run, file_format="label-studio", out=tmp_path / "ls")
    tasks = json.loads((tmp_path / "ls" / "tasks.json").read_text())
    assert [task["data"]["image"] for task in tasks] == [f"/data/local-files/?d=photos/{name}" for name in TAKEN]
    view = ElementTree.fromstring((tmp_path / "ls" / "labels.xml").read_text())
    choices = {choice.get("value") for choice in view.iter("Choice")}
    assert choices == set(NAMES)
    for task in tasks:
        (said,) = task.get("annotations", []) + task.get("predictions", [])
        (result,) = said["result"]
        control = view.find(f".//*[@name='{result['from_name']}']")
        assert control is not None
        assert control.get("toName") == result["to_name"]
        assert set(result["value"]["choices"]) <= choices
    assert "annotations" in tasks[0]
    assert tasks[1]["predictions"][0]["score"] == 0.97


def test_fiftyone_gets_its_layout(run: Path, tmp_path: Path) -> None:
    export_labels(run, file_format="fiftyone", out=tmp_path / "fo")
    content = json.loads((tmp_path / "fo" / "labels.json").read_text())
    files = {path.stem: path for path in (tmp_path / "fo" / "data").iterdir()}
    assert {stem: content["classes"][number] for stem, number in content["labels"].items()} == {
        name.replace("/", "__").removesuffix(".png"): label for name, label in TAKEN.items()
    }
    assert files.keys() == content["labels"].keys()


def test_the_command_and_its_errors(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    done = run_command(monkeypatch, capsys, "export", str(run), "--format", "folders", "--out", str(tmp_path / "x"))
    assert done.code == 0, done.err
    assert "4 images, 1 with your labels and 3 with accepted ones; " in done.out
    assert "; 1 sure but unchecked and 1 to look at are left out" in done.out
    done = run_command(
        monkeypatch, capsys, "export", str(run), "--format", "label-studio", "--out", str(tmp_path / "l")
    )
    assert f"LABEL_STUDIO_LOCAL_FILES_DOCUMENT_ROOT={tmp_path} label-studio" in done.out
    assert f"the path {tmp_path / 'photos'} " in done.out
    (tmp_path / "photos" / "000.png").unlink()
    done = run_command(monkeypatch, capsys, "export", str(run), "--format", "fiftyone", "--out", str(tmp_path / "y"))
    assert done.code == 1
    assert "1 images are gone since, the first is 000.png" in done.err


def test_new_images_are_accepted_only_as_far_as_the_runs_check_allows(tmp_path: Path) -> None:
    file = tmp_path / "result.json"
    assert [triage_rule(file)(sure) for sure in (0.99, 0.9)] == ["unchecked", "review"]
    write_json(file, {"triage": {"threshold": 0.97}, "cross_check": {"conclusive": True}})
    assert [triage_rule(file)(sure) for sure in (0.98, 0.96)] == ["accept", "review"]
    write_json(file, {"triage": {"threshold": 0.6, "threshold_for_new": 0.99}, "cross_check": {"conclusive": True}})
    assert [triage_rule(file)(sure) for sure in (0.995, 0.98)] == ["accept", "review"]
    write_json(file, {"triage": {"threshold": 0.6, "threshold_for_new": None}, "cross_check": {"conclusive": True}})
    assert triage_rule(file)(1.0) == "review"
    write_json(file, {"triage": {"threshold": None}, "cross_check": {"conclusive": True}})
    assert triage_rule(file)(1.0) == "review"
    write_json(file, {"triage": {"threshold": 0.95, "accept_checked": 0}})
    assert triage_rule(file)(0.99) == "unchecked"
