"""Files that did not change are not opened again, and one that changed is noticed."""

import os
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from protocon.data.files import decode_all
from protocon.data.files.decode import decode_with_facts
from protocon.data.files.digests import content_of
from protocon.data.imageset import ArrayImages, DataBundle, FileImages, SpooledImages
from protocon.data.registry import DATASETS
from protocon.data.source_options import SourceOptions
from protocon.errors import DataError
from protocon.features.key import images_digest

COUNT = 6


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Six pictures, two of them labelled, and one that is none."""
    place = tmp_path / "photos"
    place.mkdir()
    for number in range(COUNT):
        pixels = np.random.default_rng(number).integers(0, 256, (9, 9, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(place / f"{number}.png")
    (place / "broken.jpg").write_bytes(b"no picture")
    (place / "labels.csv").write_text("file,label\n0.png,a\n1.png,b\n")
    time.sleep(0.06)  # no record is kept of files that have only just changed
    return place


class Loads:
    """Loads a folder, and counts what is decoded before anything is read."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.decoded: list[str] = []
        decode = decode_with_facts

        def counted(*arguments: object, name: str, **options: object) -> object:
            self.decoded.append(Path(name).name)
            return decode(*arguments, name=name, **options)  # type: ignore[arg-type]

        monkeypatch.setattr(decode_all, "decode_with_facts", counted)

    def __call__(self, folder: Path, **options: object) -> DataBundle:
        self.decoded.clear()
        record = folder.parent / "cache"
        return DATASETS["folder"](SourceOptions(root=folder, record=record, image_size=8, **options))  # type: ignore[arg-type]


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Loads:
    return Loads(monkeypatch)


def test_the_second_time_nothing_is_decoded_and_everything_is_the_same(folder: Path, load: Loads) -> None:
    first = load(folder)
    assert len(load.decoded) == COUNT + 1
    second = load(folder)
    assert load.decoded == []
    assert isinstance(first.train, ArrayImages)
    assert isinstance(second.train, FileImages)
    assert first.files == second.files
    assert [skip.path for skip in second.files.skipped if "decoded" in skip.reason or "image" in skip.reason]  # type: ignore[union-attr]
    assert first.train.fingerprint() == second.train.fingerprint()
    assert images_digest(first.train) == images_digest(second.train) == content_of(first.train.tensor)
    everyone = np.arange(COUNT)
    assert torch.equal(first.train.read(everyone), second.train.read(everyone))


def test_large_sets_wait_in_a_file_and_are_decoded_once(folder: Path, load: Loads) -> None:
    held, spooled = load(folder), load(folder, memory_limit=10)
    assert load.decoded == []  # the record serves both
    for file in (folder.parent / "cache").iterdir():
        file.unlink()
    spooled = load(folder, memory_limit=10)
    assert isinstance(spooled.train, SpooledImages)
    assert len(load.decoded) == COUNT + 1
    some = np.array([4, 0, 2])
    assert torch.equal(held.train.read(some), spooled.train.read(some))
    assert torch.equal(held.train.read(some), spooled.train.subset(some).read(np.arange(3)))
    assert images_digest(held.train) == images_digest(spooled.train)
    assert spooled.train.fingerprint() == held.train.fingerprint()


@pytest.mark.parametrize("change", ["content", "content and time", "time", "new", "gone", "permission"])
def test_whatever_changes_all_files_are_decoded_again(change: str, folder: Path, load: Loads) -> None:
    before = images_digest(load(folder).train)
    file = folder / "3.png"
    status = file.stat()
    if change.startswith("content"):
        content = bytearray(file.read_bytes())
        Image.fromarray(np.full((9, 9, 3), 7, dtype=np.uint8)).save(file)
        other = file.read_bytes()
        file.write_bytes(other + bytes(max(0, len(content) - len(other))))  # the same size
        if change == "content":  # and the same time: what a careful copy leaves
            os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    elif change == "time":
        os.utime(file)
    elif change == "new":
        Image.new("RGB", (9, 9)).save(folder / "new.png")
    elif change == "gone":
        file.unlink()
    else:
        file.chmod(0o600)
    after = load(folder)
    assert len(load.decoded) == COUNT + 1 + {"new": 1, "gone": -1}.get(change, 0)
    assert (images_digest(after.train) != before) is (change not in ("time", "permission"))


def test_a_file_that_can_no_longer_be_read_is_an_error_where_that_is_asked_for(folder: Path, load: Loads) -> None:
    (folder / "broken.jpg").unlink()
    load(folder, bad_files="error")
    (folder / "5.png").write_bytes(b"damaged")
    with pytest.raises(DataError, match=r"5\.png"):
        load(folder, bad_files="error")


def test_a_damaged_record_is_no_record(folder: Path, load: Loads) -> None:
    load(folder)
    (record,) = (folder.parent / "cache").glob("files-*.json")
    record.write_bytes(record.read_bytes().replace(b'"rows": [', b'"rows": ["is gone", ', 1))
    load(folder)
    assert len(load.decoded) == COUNT + 1


def test_files_that_have_only_just_changed_leave_no_record(folder: Path, load: Loads) -> None:
    (folder / "0.png").touch()
    load(folder)
    assert not list((folder.parent / "cache").glob("files-*.json"))
