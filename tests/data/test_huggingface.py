"""Data sets of the package `datasets`, saved and loaded without a connection."""

import io
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from protocon.data.imageset import DataBundle
from protocon.data.recognise import recognise
from protocon.data.registry import DATASETS
from protocon.data.source_options import SourceOptions
from protocon.errors import DataError
from tests.data.images import class_folders, gradient

datasets: Any = pytest.importorskip("datasets")


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    hub = sys.modules.get("huggingface_hub.constants")
    if hub is not None:
        monkeypatch.setattr(hub, "HF_HUB_OFFLINE", True)


def load(root: Path, **options: object) -> DataBundle:
    return DATASETS["hf"](SourceOptions(root=root, **options))  # type: ignore[arg-type]


def png(shift: int) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(gradient(8, 8, shift=shift)).save(buffer, "PNG")
    return buffer.getvalue()


def split(labels: list[int], first: int = 0) -> Any:
    features = datasets.Features({"photo": datasets.Image(), "label": datasets.ClassLabel(names=["cat", "dog"])})
    images = [{"bytes": png(first + i), "path": None} for i in range(len(labels))]
    return datasets.Dataset.from_dict({"photo": images, "label": labels}, features=features)


def test_a_saved_data_set_with_splits(tmp_path: Path) -> None:
    parts = {"train": split([0, 1, -1]), "unsupervised": split([0, 0], 9), "test": split([1, 0, -1], 20)}
    datasets.DatasetDict({**parts, "extra": split([0])}).save_to_disk(tmp_path / "saved")
    assert recognise(tmp_path / "saved").name == "hf"
    bundle = load(tmp_path / "saved")
    assert bundle.train.class_names == ("cat", "dog")
    assert bundle.train.labels.tolist() == [0, 1, -1, -1, -1]
    assert list(bundle.train.ids)[:2] == ["train/000000", "train/000001"]
    np.testing.assert_array_equal(bundle.train.read(np.array([1]))[0].permute(1, 2, 0).numpy(), gradient(8, 8, shift=1))
    assert bundle.test is not None
    assert bundle.test.labels.tolist() == [1, 0]
    assert bundle.files is not None
    assert bundle.files.warnings == ("splits that are not used: extra",)
    assert [s.reason for s in bundle.files.skipped] == ["test image without a label"]
    assert load(tmp_path / "saved", storage="stream").train.fingerprint() == bundle.train.fingerprint()


def test_a_damaged_image_is_skipped(tmp_path: Path) -> None:
    whole = split([0, 1, 0, 1])
    features = whole.features
    rows = whole.cast_column("photo", datasets.Image(decode=False))["photo"]
    images = [*list(rows)[:3], {"bytes": b"no image", "path": None}]
    broken = datasets.Dataset.from_dict({"photo": images, "label": [0, 1, 0, 1]}, features=features)
    broken.save_to_disk(tmp_path / "saved")
    bundle = load(tmp_path / "saved")
    assert bundle.train.labels.tolist() == [0, 1, 0]
    assert bundle.files is not None
    assert bundle.files.skipped[0].reason.startswith("is not an image that can be read")


def test_parquet_as_a_file_and_a_folder(tmp_path: Path) -> None:
    (tmp_path / "set" / "data").mkdir(parents=True)
    split([0, 1, 1]).to_parquet(tmp_path / "set" / "data" / "train-00000-of-00001.parquet")
    split([0, 1], 30).to_parquet(tmp_path / "set" / "data" / "test-00000-of-00001.parquet")
    assert recognise(tmp_path / "set").name == "hf"
    bundle = load(tmp_path / "set")
    assert bundle.train.labels.tolist() == [0, 1, 1]
    assert bundle.test is not None
    single = load(tmp_path / "set" / "data" / "train-00000-of-00001.parquet")
    assert single.train.labels.tolist() == [0, 1, 1]
    assert single.test is None


def test_class_folders_through_the_package(tmp_path: Path) -> None:
    class_folders(tmp_path / "set" / "train", {"cat": 2, "dog": 2})
    bundle = load(tmp_path / "set")
    assert bundle.train.class_names == ("cat", "dog")
    assert bundle.train.labels.tolist() == [0, 0, 1, 1]


def test_no_connection_and_no_package_are_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DataError, match=r"nobody/nothing cannot be fetched.*give the folder of a local copy"):
        load(Path("nobody/nothing"))
    with pytest.raises(DataError, match="needs a name: --data hf:NAME"):
        DATASETS["hf"](SourceOptions())
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(DataError, match="pip install datasets"):
        load(Path("nobody/nothing"))


def test_a_data_set_without_images_or_classes_is_explained(tmp_path: Path) -> None:
    datasets.Dataset.from_dict({"text": ["a", "b"]}).save_to_disk(tmp_path / "text")
    with pytest.raises(DataError, match="no column of images; its columns are text"):
        load(tmp_path / "text")
    split([0, 1]).remove_columns("label").save_to_disk(tmp_path / "bare")
    with pytest.raises(DataError, match=r"0 classes .no labels.; two are needed"):
        load(tmp_path / "bare")
