"""How a folder or file of one's own is read: guessed from what is there."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from protocon.data.recognise import recognise
from protocon.data.registry import DATASETS
from protocon.data.source_options import SourceOptions
from protocon.errors import DataError
from tests.data.images import class_folders, save_png


def with_labels(root: Path) -> None:
    class_folders(root, {"x": 2, "y": 2})  # folders that are no classes: the labels file wins
    (root / "labels.csv").write_text("x/000.png,cat\ny/000.png,dog\n")


def with_classes(root: Path) -> None:
    class_folders(root, {"cat": 2, "dog": 2, "_unlabeled": 2})


def with_parts(root: Path) -> None:
    class_folders(root / "train", {"cat": 2, "dog": 2})
    class_folders(root / "test", {"cat": 1, "dog": 1})


def with_metadata(root: Path) -> None:
    class_folders(root, {"train": 4, "test": 2})
    (root / "train" / "metadata.csv").write_text("file_name,label\n000.png,cat\n001.png,dog\n")
    (root / "test" / "metadata.csv").write_text("file_name,label\n000.png,cat\n001.png,dog\n")


def with_arrays(root: Path) -> None:
    root.mkdir()
    np.savez(root / "set.npz", x=np.zeros((4, 3), np.float32), y=[0, 1, -1, -1])


LAYOUTS = {
    "labels": (with_labels, "folder", "there is labels.csv"),
    "classes": (with_classes, "imagefolder", "2 class folders: cat, dog"),
    "parts": (with_parts, "imagefolder", "2 class folders: cat, dog"),
    "metadata": (with_metadata, "metadata", "there is test/metadata.csv"),
    "arrays": (with_arrays, "arrays", "set.npz is all that can be read"),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_folder_is_recognised_and_read(layout: str, tmp_path: Path) -> None:
    write, name, reason = LAYOUTS[layout]
    write(tmp_path / "photos")
    found = recognise(tmp_path / "photos")
    assert found.name == name
    assert found.said().startswith(str(tmp_path / "photos"))
    assert reason in found.said()
    bundle = DATASETS[found.name](SourceOptions(root=found.root))
    assert len(bundle.train.class_names) == 2
    assert (bundle.test is not None) == (layout in ("parts", "metadata"))


@pytest.mark.parametrize("layout", ["labels", "classes", "parts", "metadata"])
def test_a_zip_is_recognised_and_read_like_its_folder(layout: str, tmp_path: Path) -> None:
    write, name, _ = LAYOUTS[layout]
    write(tmp_path / "photos")
    archive = Path(shutil.make_archive(str(tmp_path / "a"), "zip", tmp_path, "photos"))
    found = recognise(archive)
    assert (found.name, found.root) == (name, archive)
    zipped = DATASETS[name](SourceOptions(root=archive))
    plain = DATASETS[name](SourceOptions(root=tmp_path / "photos"))
    assert list(zipped.train.ids) == list(plain.train.ids)
    assert zipped.train.labels.tolist() == plain.train.labels.tolist()


def test_a_given_labels_file_decides(tmp_path: Path) -> None:
    with_classes(tmp_path / "photos")
    assert recognise(tmp_path / "photos", tmp_path / "mine.csv").name == "folder"


def test_arrays_and_benchmarks(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros((2, 2)))
    assert recognise(tmp_path / "x.npy").name == "arrays"
    (tmp_path / "c" / "cifar-10-batches-py").mkdir(parents=True)
    assert recognise(tmp_path / "c").name == "cifar10"


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ([], "has no images. Expected in it: a labels.csv.*Found: an empty folder"),
        (["a.txt"], r"has no images.*Found: a\.txt"),
        (["a.png", "b.png"], "has 2 images but nothing that says the class"),
        (["cat/a.png", "unlabelled/b.png"], "has 2 images but nothing that says the class"),
        (["a.png", "b.png"], "No labels yet"),
    ],
)
def test_a_folder_that_says_nothing_is_explained(tmp_path: Path, files: list[str], message: str) -> None:
    for name in files:
        save_png(tmp_path / name) if name.endswith("png") else (tmp_path / name).write_text("x")
    with pytest.raises(DataError, match=message):
        recognise(tmp_path)


def test_other_files_are_explained(tmp_path: Path) -> None:
    (tmp_path / "labels.csv").write_text("a,b\n")
    with pytest.raises(DataError, match="That is a labels file: name the folder"):
        recognise(tmp_path / "labels.csv")
    with pytest.raises(DataError, match="does not exist"):
        recognise(tmp_path / "nowhere")
