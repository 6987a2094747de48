"""Fashion-MNIST in IDX files."""

import gzip
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from protocon.data.registry import DATASETS
from protocon.data.source_options import SourceOptions
from protocon.data.sources import fashion_mnist as idx
from protocon.errors import DataError


def write_idx(folder: Path, *, packed: bool) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    opener: Any = gzip.open if packed else open
    for part, count in (("train", 6), ("t10k", 4)):
        images = (np.arange(count * 784) % 251).astype(np.uint8)
        labels = bytes(i % 10 for i in range(count))
        suffix = ".gz" if packed else ""
        with opener(folder / f"{part}-images-idx3-ubyte{suffix}", "wb") as file:
            file.write(struct.pack(">4B3I", 0, 0, 8, 3, count, 28, 28) + images.tobytes())
        with opener(folder / f"{part}-labels-idx1-ubyte{suffix}", "wb") as file:
            file.write(struct.pack(">4BI", 0, 0, 8, 1, count) + labels)


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("sub", ["", "FashionMNIST/raw"])
def test_fashion_mnist_reads_idx_files(tmp_path: Path, packed: bool, sub: str) -> None:
    write_idx(tmp_path / sub, packed=packed)
    bundle = DATASETS["fashion-mnist"](SourceOptions(root=tmp_path))
    assert bundle.test is not None
    assert (len(bundle.train), len(bundle.test), bundle.train.shape) == (6, 4, (1, 28, 28))
    assert bundle.train.labels.tolist() == [0, 1, 2, 3, 4, 5]
    assert bundle.train.read(np.array([1]))[0, 0, 0, :3].tolist() == [784 % 251, 785 % 251, 786 % 251]
    assert bundle.train.class_names[9] == "Ankle boot"
    large = DATASETS["fashion-mnist"](SourceOptions(root=tmp_path, image_size=32))
    assert large.train.shape == (1, 32, 32)


def test_fashion_mnist_looks_in_debians_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_idx(tmp_path, packed=True)
    monkeypatch.setattr(idx, "DEBIAN_FOLDER", tmp_path)
    assert len(DATASETS["fashion-mnist"](SourceOptions()).train) == 6
    monkeypatch.setattr(idx, "DEBIAN_FOLDER", tmp_path / "no")
    with pytest.raises(DataError, match="apt-get install dataset-fashion-mnist"):
        DATASETS["fashion-mnist"](SourceOptions())


def test_a_wrong_root_says_what_was_expected_and_found(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").touch()
    (tmp_path / "images").mkdir()
    with pytest.raises(DataError, match=r"train-images-idx3-ubyte.*Found: images/, notes\.txt\..*github") as caught:
        DATASETS["fashion-mnist"](SourceOptions(root=tmp_path))
    assert str(tmp_path) in str(caught.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: data[:-1], "declares 4,704 bytes but holds only 4,703"),
        (lambda data: data + b"!", "holds more"),
        (lambda data: b"\x00\x00\x0d\x03" + data[4:], "starts with 00000d03, expected 00000803"),
        (lambda _: b"", "starts with nothing"),
    ],
)
def test_damaged_idx_files_are_refused(tmp_path: Path, change: Any, message: str) -> None:
    write_idx(tmp_path, packed=False)
    path = tmp_path / "train-images-idx3-ubyte"
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(DataError, match=message):
        DATASETS["fashion-mnist"](SourceOptions(root=tmp_path))


def test_a_cut_gzip_file_is_refused(tmp_path: Path) -> None:
    write_idx(tmp_path, packed=True)
    path = tmp_path / "train-images-idx3-ubyte.gz"
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(DataError, match=r"idx3-ubyte\.gz cannot be read"):
        DATASETS["fashion-mnist"](SourceOptions(root=tmp_path))
