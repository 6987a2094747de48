"""Image folders with metadata files, as Hugging Face writes them."""

import json
from pathlib import Path

import pytest

from protocon.data.imageset import DataBundle
from protocon.data.registry import DATASETS
from protocon.data.source_options import SourceOptions
from protocon.errors import DataError
from tests.data.images import class_folders, save_png


def load(root: Path, **options: object) -> DataBundle:
    return DATASETS["metadata"](SourceOptions(root=root, **options))  # type: ignore[arg-type]


def known(bundle: DataBundle) -> dict[str, str]:
    train = bundle.train
    return {name: train.class_names[label] for name, label in zip(train.ids, train.labels, strict=True) if label >= 0}


def write_lines(path: Path, rows: list[dict[str, object]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_one_file_for_a_whole_folder(tmp_path: Path) -> None:
    class_folders(tmp_path, {"in": 4})
    rows: list[dict[str, object]] = [
        {"file_name": "in/000.png", "label": "cat", "width": 8},
        {"file_name": "in/001.png", "label": "dog"},
        {"file_name": "in/002.png", "label": None},
    ]
    write_lines(tmp_path / "metadata.jsonl", rows)
    bundle = load(tmp_path)
    assert known(bundle) == {"in/000.png": "cat", "in/001.png": "dog"}
    assert (len(bundle.train), bundle.test) == (4, None)
    assert bundle.files is not None
    assert [(s.path, s.reason) for s in bundle.files.skipped] == [("metadata.jsonl", "the labels file")]


def test_train_test_and_validation(tmp_path: Path) -> None:
    class_folders(tmp_path, {"train": 5, "test": 3, "validation": 1})
    (tmp_path / "train" / "metadata.csv").write_text("file_name,text,label\n000.png,x,2\n001.png,y,10\n")
    (tmp_path / "test" / "metadata.csv").write_text("file_name,label\n000.png,10\n001.png,2\n002.png,\n")
    bundle = load(tmp_path)
    assert bundle.train.class_names == ("2", "10")
    assert known(bundle) == {"train/000.png": "2", "train/001.png": "10"}
    assert bundle.test is not None
    assert bundle.test.labels.tolist() == [1, 0]
    assert bundle.files is not None
    assert {s.path: s.reason for s in bundle.files.skipped} == {
        "train/metadata.csv": "the labels file",
        "test/metadata.csv": "the labels file",
        "test/002.png": "test image without a label",
        "validation/000.png": "test/ is tested on instead",
    }


def test_warnings_name_the_metadata_file_and_line(tmp_path: Path) -> None:
    class_folders(tmp_path, {"train": 4})
    write_lines(
        tmp_path / "train" / "metadata.jsonl",
        [
            {"file_name": "000.png", "label": 0},
            {"file_name": "001.png", "label": 1},
            {"file_name": "0002.png", "label": 1},
            {"file_name": "../../003.png", "label": 1},
            {"label": 1},
            {"file_name": "003.png", "label": [1, 2]},
        ],
    )
    bundle = load(tmp_path)
    assert bundle.files is not None
    text = "\n".join(bundle.files.warnings)
    assert "train/metadata.jsonl, line 3: train/0002.png is not there (did you mean train/002.png?)" in text
    assert "line 4: train/../../003.png points out of the folder" in text
    assert "train/metadata.jsonl: line 5: expected" in text
    assert "train/metadata.jsonl: line 6: expected" in text
    assert len(known(bundle)) == 2


def test_a_folder_without_metadata_is_explained(tmp_path: Path) -> None:
    save_png(tmp_path / "a.png")
    with pytest.raises(DataError, match=r"expected in .*metadata\.csv or metadata\.jsonl.*Found: a\.png"):
        load(tmp_path)
    save_png(tmp_path / "test" / "a.png")
    save_png(tmp_path / "test" / "b.png")
    (tmp_path / "a.png").unlink()
    (tmp_path / "test" / "metadata.csv").write_text("file_name,label\na.png,x\nb.png,y\n")
    with pytest.raises(DataError, match="every image is in a test folder"):
        load(tmp_path)
