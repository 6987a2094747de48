"""What becomes of the files of a folder: each accounted for, held or streamed, kept decoded, held out."""

import os
from pathlib import Path

import numpy as np
import pytest
import torch

from protocon.data.imageset import ArrayImages, DataBundle, FileImages
from protocon.data.registry import DATASETS
from protocon.data.source_options import SourceOptions
from protocon.errors import ConfigError, DataError
from tests.data.images import class_folders, gradient, save_png


def load(root: Path, **options: object) -> DataBundle:
    return DATASETS["imagefolder"](SourceOptions(root=root, **options))  # type: ignore[arg-type]


def reasons(bundle: DataBundle) -> dict[str, str]:
    assert bundle.files is not None
    return {skip.path: skip.reason for skip in bundle.files.skipped}


def test_every_file_is_used_or_skipped_with_a_reason(tmp_path: Path) -> None:
    class_folders(tmp_path / "train", {"a": 2, "b": 2})
    class_folders(tmp_path / "test", {"a": 1, "b": 1})
    class_folders(tmp_path / "val", {"a": 1, "b": 1})
    (tmp_path / "train" / "a" / "notes.txt").write_text("x")
    (tmp_path / "train" / "a" / "README").write_text("x")
    (tmp_path / "train" / "b" / "empty.jpg").touch()
    (tmp_path / "train" / "b" / ".DS_Store").write_text("x")
    (tmp_path / "train" / "b" / "gone.png").symlink_to(tmp_path / "nowhere.png")
    save_png(tmp_path / "train" / "stray.png")
    save_png(tmp_path / "test" / "stray.png")
    save_png(tmp_path / "cover.png")
    bundle = load(tmp_path)
    outside = "outside train/, unlabelled/, unlabeled/, test/"
    assert reasons(bundle) == {
        "train/a/notes.txt": "not an image (.txt)",
        "train/a/README": "not an image by its name (no extension): rename it if it is one, to .jpg or the like",
        "train/b/empty.jpg": "empty file",
        "train/b/.DS_Store": "hidden file",
        "train/b/gone.png": "broken link",
        "train/stray.png": "outside a class folder",
        "test/stray.png": "test image outside a class folder",
        "val/a/000.png": outside,
        "val/b/000.png": outside,
        "cover.png": outside,
    }
    assert bundle.files is not None
    files = [path for path in tmp_path.rglob("*") if path.is_symlink() or path.is_file()]
    assert (bundle.files.used, bundle.files.total) == (6, len(files))
    assert bundle.files.summary().startswith("16 files: 6 used, 10 skipped (3 outside")


def test_test_images_without_classes_are_reported_not_used(tmp_path: Path) -> None:
    class_folders(tmp_path / "train", {"a": 1, "b": 1})
    save_png(tmp_path / "test" / "1.png")
    bundle = load(tmp_path)
    assert bundle.test is None
    assert reasons(bundle) == {"test/1.png": "test image outside a class folder"}


def broken_folder(root: Path) -> None:
    class_folders(root, {"a": 3, "b": 2})
    whole = (root / "a" / "001.png").read_bytes()
    (root / "a" / "001.png").write_bytes(whole[:50])
    (root / "b" / "000.png").write_text("not an image")


def test_damaged_files_stop_loading_with_all_their_names(tmp_path: Path) -> None:
    broken_folder(tmp_path)
    with pytest.raises(DataError, match=r"(?s)2 of 5 files cannot be decoded.*a/001.*b/000.*set bad_files to skip"):
        load(tmp_path, bad_files="error")


@pytest.mark.parametrize("storage", ["memory", "stream"])
def test_damaged_files_can_be_left_out_and_reported(tmp_path: Path, storage: str) -> None:
    broken_folder(tmp_path)
    bundle = load(tmp_path, bad_files="skip", storage=storage)
    assert list(bundle.train.ids) == ["a/000.png", "a/002.png", "b/001.png"]
    assert bundle.train.labels.tolist() == [0, 0, 1]
    expected = gradient(8, 8, shift=6)
    np.testing.assert_array_equal(bundle.train.read(np.array([1]))[0].permute(1, 2, 0).numpy(), expected)
    assert list(reasons(bundle)) == ["a/001.png", "b/000.png"]
    assert bundle.files is not None
    assert bundle.files.total == 5


def test_nothing_but_damaged_files_is_an_error(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.png").write_text("no")
    with pytest.raises(DataError, match="none of 2 files can be decoded"):
        load(tmp_path, bad_files="skip")


def test_storage_follows_the_memory_limit(tmp_path: Path) -> None:
    class_folders(tmp_path, {"a": 2, "b": 2})
    total = 4 * 3 * 8 * 8
    assert isinstance(load(tmp_path, memory_limit=total).train, ArrayImages)
    assert isinstance(load(tmp_path, memory_limit=total - 1).train, FileImages)
    assert isinstance(load(tmp_path, memory_limit=0, storage="memory").train, ArrayImages)
    assert isinstance(load(tmp_path, storage="stream").train, FileImages)
    held, streamed = load(tmp_path).train, load(tmp_path, storage="stream").train
    assert torch.equal(held.read(np.arange(4)), streamed.read(np.arange(4)))


def test_the_usual_size_is_the_median_short_side_up_to_224(tmp_path: Path) -> None:
    for name, sides in {"a": (10, 12, 30), "b": (12, 50)}.items():
        for i, side in enumerate(sides):
            save_png(tmp_path / name / f"{i}.png", gradient(side + 5, side))
    assert load(tmp_path).train.shape == (3, 12, 12)
    assert load(tmp_path, image_size=20).train.shape == (3, 20, 20)
    assert load(tmp_path, grey=True).train.shape == (1, 12, 12)
    for i in range(9):
        save_png(tmp_path / "a" / f"large{i}.png", gradient(300, 300))
    assert load(tmp_path, storage="stream").train.shape == (3, 224, 224)


def test_decoded_images_are_kept_and_reused(tmp_path: Path) -> None:
    class_folders(tmp_path / "d", {"a": 2, "b": 2})
    first = load(tmp_path / "d", cache=tmp_path / "cache").train
    kept = list((tmp_path / "cache").iterdir())
    assert len(kept) == 1
    marked = np.load(kept[0])
    marked[0] = 99
    np.save(kept[0], marked)
    again = load(tmp_path / "d", cache=tmp_path / "cache").train
    assert (again.read(np.array([0])) == 99).all()
    assert torch.equal(again.read(np.arange(1, 4)), first.read(np.arange(1, 4)))
    assert again.fingerprint() == first.fingerprint()
    os.utime(tmp_path / "d" / "a" / "000.png", (1, 1))  # changed since: decoded anew
    fresh = load(tmp_path / "d", cache=tmp_path / "cache").train
    assert torch.equal(fresh.read(np.arange(4)), first.read(np.arange(4)))
    assert load(tmp_path / "d", cache=tmp_path / "cache", image_size=4).train.shape == (3, 4, 4)


def test_a_damaged_cache_is_decoded_anew(tmp_path: Path) -> None:
    class_folders(tmp_path / "d", {"a": 1, "b": 1})
    first = load(tmp_path / "d", cache=tmp_path / "cache").train
    kept = next((tmp_path / "cache").iterdir())
    kept.write_bytes(kept.read_bytes()[:100])
    again = load(tmp_path / "d", cache=tmp_path / "cache").train
    assert torch.equal(again.read(np.arange(2)), first.read(np.arange(2)))


def test_a_test_fraction_is_stratified_and_seeded(tmp_path: Path) -> None:
    class_folders(tmp_path, {"a": 10, "b": 20, "c": 1, "unlabelled": 5})
    bundle = load(tmp_path, test_fraction=0.3)
    assert bundle.test is not None
    assert np.bincount(bundle.test.labels, minlength=3).tolist() == [
        3,
        6,
        0,
    ]  # the only c is kept for training
    assert len(bundle.train) == 27
    assert (bundle.train.labels == -1).sum() == 5
    assert set(bundle.train.ids).isdisjoint(bundle.test.ids)
    again, other = load(tmp_path, test_fraction=0.3).test, load(tmp_path, test_fraction=0.3, test_seed=1).test
    assert again is not None
    assert other is not None
    assert list(again.ids) == list(bundle.test.ids) != list(other.ids)


def test_a_test_fraction_beside_a_test_set_is_refused(tmp_path: Path) -> None:
    class_folders(tmp_path / "train", {"a": 1, "b": 1})
    class_folders(tmp_path / "test", {"a": 1, "b": 1})
    with pytest.raises(ConfigError, match="has a test set of its own"):
        load(tmp_path, test_fraction=0.5)


def test_a_test_fraction_that_holds_out_nothing_is_refused(tmp_path: Path) -> None:
    class_folders(tmp_path, {"a": 1, "b": 1})
    with pytest.raises(DataError, match="leaves no test image"):
        load(tmp_path, test_fraction=0.5)
