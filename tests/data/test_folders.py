"""Class folders, and ImageNet."""

import os
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch

from protocon.data.files.stores import ZipStore
from protocon.data.imageset import DataBundle
from protocon.data.registry import DATASETS
from protocon.data.source_options import SourceOptions
from protocon.errors import DataError
from tests.data.images import class_folders, gradient, save_png


def load(root: Path, **options: object) -> DataBundle:
    return DATASETS["imagefolder"](SourceOptions(root=root, **options))  # type: ignore[arg-type]


def reasons(bundle: DataBundle) -> dict[str, str]:
    assert bundle.files is not None
    return {skip.path: skip.reason for skip in bundle.files.skipped}


def test_class_folders_are_the_classes(tmp_path: Path) -> None:
    class_folders(tmp_path, {"dog": 2, "cat": 3})
    bundle = load(tmp_path)
    assert (bundle.train.class_names, bundle.test) == (("cat", "dog"), None)
    assert bundle.train.labels.tolist() == [0, 0, 0, 1, 1]
    assert list(bundle.train.ids)[-1] == "dog/001.png"
    np.testing.assert_array_equal(bundle.train.read(np.array([4]))[0].permute(1, 2, 0).numpy(), gradient(8, 8, shift=3))
    assert bundle.hints.flip


@pytest.mark.parametrize("test", ["test", "val", "validation"])
def test_train_and_test_folders(tmp_path: Path, test: str) -> None:
    class_folders(tmp_path / "train", {"a": 2, "b": 2})
    class_folders(tmp_path / test, {"b": 3})
    bundle = load(tmp_path)
    assert bundle.test is not None
    assert bundle.test.labels.tolist() == [1, 1, 1]
    assert bundle.train.labels.tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize("folder", ["unlabelled", "unlabeled", "train/unlabeled"])
def test_unlabelled_images_are_for_training_without_a_label(tmp_path: Path, folder: str) -> None:
    class_folders(tmp_path / "train", {"a": 1, "b": 1})
    class_folders(tmp_path / "test", {"a": 1, "b": 1})
    save_png(tmp_path / folder / "deep" / "x.png")
    bundle = load(tmp_path)
    assert bundle.train.class_names == ("a", "b")
    assert sorted(bundle.train.labels.tolist()) == [-1, 0, 1]
    assert bundle.train.ids[int(np.argmin(bundle.train.labels))] == f"{folder}/deep/x.png"


def test_unlabelled_images_beside_plain_class_folders(tmp_path: Path) -> None:
    class_folders(tmp_path, {"a": 1, "b": 1, "unlabelled": 2})
    assert load(tmp_path).train.labels.tolist() == [0, 1, -1, -1]


def test_folders_within_a_class_belong_to_it(tmp_path: Path) -> None:
    class_folders(tmp_path, {"a/x": 1, "a/y": 1, "b": 1})
    assert load(tmp_path).train.labels.tolist() == [0, 0, 1]


def test_a_class_may_be_called_train(tmp_path: Path) -> None:
    class_folders(tmp_path, {"train": 2, "bus": 1})
    assert load(tmp_path).train.class_names == ("bus", "train")


def test_a_linked_class_folder_is_read_and_a_loop_is_not_endless(tmp_path: Path) -> None:
    class_folders(tmp_path / "root", {"a": 1})
    class_folders(tmp_path / "elsewhere", {"b": 2})
    (tmp_path / "root" / "b").symlink_to(tmp_path / "elsewhere" / "b")
    (tmp_path / "root" / "a" / "loop").symlink_to(tmp_path / "root")
    bundle = load(tmp_path / "root")
    assert set(bundle.train.class_names) == {"a", "b"}
    assert "b/001.png" in bundle.train.ids


def test_a_zip_reads_like_its_folder(tmp_path: Path) -> None:
    class_folders(tmp_path / "d", {"a": 2, "b": 1})
    with zipfile.ZipFile(tmp_path / "d.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for path in (tmp_path / "d").rglob("*.png"):
            archive.write(path, path.relative_to(tmp_path / "d").as_posix())
    plain, packed = load(tmp_path / "d"), load(tmp_path / "d.zip", storage="stream")
    assert plain.train.fingerprint() == packed.train.fingerprint()
    assert torch.equal(plain.train.read(np.arange(3)), packed.train.read(np.arange(3)))


def test_a_forked_process_opens_the_archive_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with zipfile.ZipFile(tmp_path / "d.zip", "w") as archive:
        archive.writestr("a/1.png", b"x")
    opened: list[Path] = []
    real = zipfile.ZipFile

    def count(path: Path) -> zipfile.ZipFile:
        opened.append(path)
        return real(path)

    monkeypatch.setattr(zipfile, "ZipFile", count)
    store = ZipStore(tmp_path / "d.zip")
    assert store.open("1.png").read() == store.open("1.png").read() == b"x"
    assert len(opened) == 1
    monkeypatch.setattr(os, "getpid", lambda: -1)  # as in a child, which shares the parent's file position
    assert store.open("1.png").read() == b"x"
    assert len(opened) == 2


def test_a_damaged_zip_is_named(tmp_path: Path) -> None:
    (tmp_path / "d.zip").write_bytes(b"PK not really")
    with pytest.raises(DataError, match=r"d\.zip is not a readable zip archive"):
        load(tmp_path / "d.zip")


def test_images_without_class_folders_point_to_the_other_source(tmp_path: Path) -> None:
    save_png(tmp_path / "1.png")
    with pytest.raises(DataError, match=r"Found 0 class folders.*labels\.csv use the dataset 'folder'"):
        load(tmp_path)


def test_a_class_folder_without_images_is_left_out_and_named(tmp_path: Path) -> None:
    class_folders(tmp_path, {"a": 1, "b": 1})
    (tmp_path / "c").mkdir()
    bundle = load(tmp_path)
    assert bundle.train.class_names == ("a", "b")
    assert bundle.files is not None
    assert bundle.files.warnings == ("class folder c/ has no image; it is left out",)
    for image in (tmp_path / "b").iterdir():
        image.unlink()
    with pytest.raises(DataError, match="1 class folder with images; at least two are needed"):
        load(tmp_path)


def test_a_benchmark_class_without_images_is_an_error(tmp_path: Path) -> None:
    class_folders(tmp_path / "train", {"n00000001": 1, "n00000002": 1})
    class_folders(tmp_path / "val", {"n00000001": 1, "n00000002": 1})
    (tmp_path / "train" / "n00000003").mkdir()
    with pytest.raises(DataError, match="no image in the class folder train/n00000003"):
        DATASETS["imagenet"](SourceOptions(root=tmp_path))


@pytest.mark.parametrize("name", ["unlabelled", "unlabeled", "_unlabeled", "Unlabelled_"])
@pytest.mark.parametrize("part", ["", "train/"])
def test_unlabelled_folders_by_any_of_their_names(tmp_path: Path, name: str, part: str) -> None:
    class_folders(tmp_path / "train", {"a": 1, "b": 1})
    class_folders(tmp_path / part, {name: 2})
    bundle = load(tmp_path)
    assert bundle.train.class_names == ("a", "b")
    assert sorted(bundle.train.labels.tolist()) == [-1, -1, 0, 1]
    assert bundle.files is not None
    assert bundle.files.skipped == ()


def test_test_images_of_other_classes_are_reported_not_used(tmp_path: Path) -> None:
    class_folders(tmp_path / "train", {"a": 1, "b": 1})
    class_folders(tmp_path / "test", {"a": 1, "Beta": 1})
    bundle = load(tmp_path)
    assert bundle.test is not None
    assert list(bundle.test.ids) == ["test/a/000.png"]
    assert bundle.files is not None
    assert bundle.files.warnings == ("test/ has classes that train/ has not, which are not tested: Beta",)
    assert [(s.path, s.reason) for s in bundle.files.skipped] == [
        ("test/Beta/000.png", "test image of a class that train/ has not")
    ]


def test_test_classes_of_a_benchmark_must_be_training_classes(tmp_path: Path) -> None:
    class_folders(tmp_path / "train", {"n00000001": 1, "n00000002": 1})
    class_folders(tmp_path / "val", {"n00000001": 1, "n00000003": 1})
    with pytest.raises(DataError, match="val/ has classes that train/ has not: n00000003"):
        DATASETS["imagenet"](SourceOptions(root=tmp_path))


def test_a_test_folder_without_a_train_folder_is_an_error(tmp_path: Path) -> None:
    class_folders(tmp_path, {"a": 1, "b": 1, "test/a": 1})
    with pytest.raises(DataError, match="has test/ with folders in it but no train/"):
        load(tmp_path)


def test_a_root_that_is_some_other_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "x.tar").write_bytes(b"123")
    with pytest.raises(DataError, match="Found: a file of 3 bytes"):
        load(tmp_path / "x.tar")


def imagenet_folder(root: Path) -> None:
    for part in ("train", "val"):
        for wnid in ("n01440764", "n01443537"):
            save_png(root / part / wnid / f"{part}_{wnid}.png").rename(root / part / wnid / f"{part}_1.JPEG")


def test_imagenet_is_train_and_val_by_wnid(tmp_path: Path) -> None:
    imagenet_folder(tmp_path)
    save_png(tmp_path / "ILSVRC" / "other.png")
    bundle = DATASETS["imagenet"](SourceOptions(root=tmp_path))
    assert bundle.test is not None
    assert bundle.train.class_names == ("n01440764", "n01443537")
    assert bundle.train.shape == (3, 224, 224)
    assert (list(bundle.test.ids), reasons(bundle)) == (
        ["val/n01440764/val_1.JPEG", "val/n01443537/val_1.JPEG"],
        {},
    )


def test_imagenet_validation_images_must_be_in_wnid_folders(tmp_path: Path) -> None:
    imagenet_folder(tmp_path)
    for folder in (tmp_path / "val").iterdir():
        for path in folder.iterdir():
            path.rename(tmp_path / "val" / f"{folder.name}.JPEG")
        folder.rmdir()
    with pytest.raises(DataError, match=r"Found: n01440764\.JPEG.*moved into wnid folders"):
        DATASETS["imagenet"](SourceOptions(root=tmp_path))
    with pytest.raises(DataError, match=r"expected in .*train/<wnid>"):
        DATASETS["imagenet"](SourceOptions(root=tmp_path / "val"))
