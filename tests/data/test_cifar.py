"""CIFAR in the forms in which it is found."""

import io
import os
import pickle
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from protocon.data.registry import DATASETS
from protocon.data.source_options import SourceOptions
from protocon.data.sources import cifar
from protocon.errors import DataError
from tests.data.images import class_folders

CIFAR_ZIP = Path(__file__).parents[2].parent / "shared" / "data" / "cifar10.zip"
PIXELS = 3 * 32 * 32


def cifar_batch(number: int, kind: str) -> tuple[np.ndarray, list[int]]:
    images = ((np.arange(4 * PIXELS) + 7 * number) % 256).astype(np.uint8).reshape(4, PIXELS)
    return images, [(number + i) % (10 if kind == "cifar10" else 100) for i in range(4)]


def cifar_files(kind: str, *, binary: bool, protocol: int = 2) -> dict[str, bytes]:
    """The files of a tiny CIFAR: 4 images a batch."""
    names = [f"data_batch_{i}" for i in range(1, 6)] + ["test_batch"] if kind == "cifar10" else ["train", "test"]
    classes = [f"class {i:02}" for i in range(10 if kind == "cifar10" else 100)]
    result: dict[str, bytes] = {}
    for number, name in enumerate(names):
        images, labels = cifar_batch(number, kind)
        if binary:
            start = np.array(labels, dtype=np.uint8)[:, None]
            if kind == "cifar100":
                start = np.concatenate([start // 5, start], axis=1)  # coarse, then fine
            result[name + ".bin"] = np.concatenate([start, images], axis=1).tobytes()
        elif kind == "cifar10":
            result[name] = pickle.dumps({b"data": images, b"labels": labels}, protocol)
        else:
            content = {b"data": images, b"fine_labels": labels, b"coarse_labels": [0] * 4}
            result[name] = pickle.dumps(content, protocol)
    if binary:
        file = "batches.meta.txt" if kind == "cifar10" else "fine_label_names.txt"
        result[file] = ("\n".join(classes) + "\n\n").encode()
    elif kind == "cifar10":
        result["batches.meta"] = pickle.dumps({b"label_names": [c.encode() for c in classes]}, protocol)
    else:
        result["meta"] = pickle.dumps({b"fine_label_names": [c.encode() for c in classes]}, protocol)
    return result


def place(root: Path, folder: str, files: dict[str, bytes], archive: str | None = None) -> None:
    if archive is None:
        (root / folder).mkdir(parents=True, exist_ok=True)
        for name, data in files.items():
            (root / folder / name).write_bytes(data)
        return
    with tarfile.open(root / archive, "w:gz") as tar:
        for name, data in files.items():
            member = tarfile.TarInfo(f"{folder}/{name}")
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))


FORMS = [
    ("cifar10", False, "cifar-10-batches-py", None),
    ("cifar10", False, "cifar-10-batches-py", "cifar-10-python.tar.gz"),
    ("cifar10", False, "", None),
    ("cifar10", True, "cifar-10-batches-bin", None),
    ("cifar10", True, "cifar-10-batches-bin", "cifar-10-binary.tar.gz"),
    ("cifar100", False, "cifar-100-python", None),
    ("cifar100", False, "cifar-100-python", "cifar-100-python.tar.gz"),
    ("cifar100", True, "cifar-100-binary", None),
]


@pytest.mark.parametrize(("kind", "binary", "folder", "archive"), FORMS)
def test_cifar_batches_in_every_form(tmp_path: Path, kind: str, binary: bool, folder: str, archive: str | None) -> None:
    place(tmp_path, folder, cifar_files(kind, binary=binary), archive)
    bundle = DATASETS[kind](SourceOptions(root=tmp_path))
    batches = 5 if kind == "cifar10" else 1
    assert bundle.test is not None
    assert (len(bundle.train), len(bundle.test), bundle.train.shape) == (4 * batches, 4, (3, 32, 32))
    assert bundle.train.class_names[3] == "class 03"
    for number in range(batches):
        images, labels = cifar_batch(number, kind)
        rows = np.arange(4 * number, 4 * number + 4)
        np.testing.assert_array_equal(bundle.train.read(rows).numpy(), images.reshape(4, 3, 32, 32))
        assert bundle.train.labels[rows].tolist() == labels
    np.testing.assert_array_equal(
        bundle.test.read(np.arange(4)).numpy(), cifar_batch(batches, kind)[0].reshape(4, 3, 32, 32)
    )
    if archive:  # an archive may also be named itself
        assert len(DATASETS[kind](SourceOptions(root=tmp_path / archive)).train) == 4 * batches


@pytest.mark.parametrize("protocol", [0, 2, 3, 4, 5])
def test_cifar_pickles_of_every_protocol(tmp_path: Path, protocol: int) -> None:
    place(tmp_path, "", cifar_files("cifar10", binary=False, protocol=protocol))
    train = DATASETS["cifar10"](SourceOptions(root=tmp_path)).train
    np.testing.assert_array_equal(train.read(np.arange(4)).numpy(), cifar_batch(0, "cifar10")[0].reshape(4, 3, 32, 32))


class Malicious:
    def __init__(self, action: tuple[Any, ...]) -> None:
        self.action = action

    def __reduce__(self) -> tuple[Any, ...]:
        return self.action


@pytest.mark.parametrize("where", ["data_batch_1", "batches.meta", "test_batch"])
@pytest.mark.parametrize("archive", [None, "cifar-10-python.tar.gz"])
def test_a_malicious_pickle_is_refused_without_running(tmp_path: Path, where: str, archive: str | None) -> None:
    target = tmp_path / "ran"
    files = cifar_files("cifar10", binary=False)
    files[where] = pickle.dumps({b"data": Malicious((os.mkdir, (str(target),)))})
    place(tmp_path, "cifar-10-batches-py", files, archive)
    with pytest.raises(DataError, match=r"asks to run \w+\.mkdir.*Nothing in it was run"):
        DATASETS["cifar10"](SourceOptions(root=tmp_path))
    assert not target.exists()


@pytest.mark.parametrize(
    "action",
    [
        (eval, ("1 + 1",)),
        (getattr, ("text", "upper")),
        (np.load, ("x.npy",)),
        (np.fromfile, ("/etc/hostname",)),
        (bytearray, (10,)),
    ],
)
def test_no_callable_but_the_stand_ins_can_be_had(tmp_path: Path, action: tuple[Any, ...]) -> None:
    files = cifar_files("cifar10", binary=False)
    files["data_batch_1"] = pickle.dumps(Malicious(action))
    place(tmp_path, "", files)
    with pytest.raises(DataError, match="asks to run"):
        DATASETS["cifar10"](SourceOptions(root=tmp_path))


def test_pickled_arrays_of_objects_are_refused(tmp_path: Path) -> None:
    files = cifar_files("cifar10", binary=False)
    files["data_batch_1"] = pickle.dumps({b"data": np.array([None, 1], dtype=object)})
    place(tmp_path, "", files)
    with pytest.raises(DataError, match="not unsigned bytes"):
        DATASETS["cifar10"](SourceOptions(root=tmp_path))


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("data_batch_3", b"garbage", "data_batch_3 is not a CIFAR batch"),
        ("data_batch_3", pickle.dumps([1]), "holds a list; a CIFAR batch is a dict"),
        ("data_batch_3", pickle.dumps({b"labels": [1]}), r"has no 'data' of shape \(n, 3072\)"),
        (
            "data_batch_3",
            pickle.dumps({b"data": np.zeros((2, 3072), np.uint8), b"fine_labels": [1, 2]}),
            "no list of whole numbers 'labels'; is this cifar10",
        ),
        (
            "data_batch_3",
            pickle.dumps({b"data": np.zeros((2, 3072), np.uint8), b"labels": [1]}),
            "2 images but 1 labels",
        ),
        ("data_batch_3", None, "the batch file data_batch_3 is missing"),
        ("batches.meta", None, r"batches\.meta with the class names is missing"),
    ],
)
def test_wrong_cifar_batches_are_named(tmp_path: Path, name: str, data: bytes | None, message: str) -> None:
    files = cifar_files("cifar10", binary=False)
    if data is None:
        del files[name]
    else:
        files[name] = data
    place(tmp_path, "", files)
    with pytest.raises(DataError, match=message):
        DATASETS["cifar10"](SourceOptions(root=tmp_path))


def test_a_cut_archive_is_named(tmp_path: Path) -> None:
    place(tmp_path, "x", cifar_files("cifar10", binary=False), "cifar-10-python.tar.gz")
    archive = tmp_path / "cifar-10-python.tar.gz"
    archive.write_bytes(archive.read_bytes()[:600])
    with pytest.raises(DataError, match="not a complete tar archive"):
        DATASETS["cifar10"](SourceOptions(root=tmp_path))


def test_an_oversized_member_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place(tmp_path, "x", cifar_files("cifar10", binary=False), "cifar-10-python.tar.gz")
    monkeypatch.setattr(cifar, "_MAX_BATCH_BYTES", 1000)
    with pytest.raises(DataError, match=r"data_batch_1 has .* too many for a batch"):
        DATASETS["cifar10"](SourceOptions(root=tmp_path))


def test_a_cifar_root_without_cifar_says_where_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"cifar-10-batches-py/.*Found: an empty folder.*kriz/cifar\.html"):
        DATASETS["cifar10"](SourceOptions(root=tmp_path))
    with pytest.raises(DataError, match="does not exist"):
        DATASETS["cifar10"](SourceOptions(root=tmp_path / "none"))
    with pytest.raises(DataError, match="needs the option root"):
        DATASETS["cifar10"](SourceOptions())


def test_cifar_class_folders_must_be_cifar(tmp_path: Path) -> None:
    class_folders(tmp_path / "train", {"cat": 1, "dog": 1})
    class_folders(tmp_path / "test", {"cat": 1, "dog": 1})
    with pytest.raises(DataError, match=r"2 class folders .*expected 10 classes.*'imagefolder'"):
        DATASETS["cifar10"](SourceOptions(root=tmp_path))


def test_cifar_class_folders_and_their_zip_are_the_same(tmp_path: Path) -> None:
    counts = {f"class{i}": 2 for i in range(10)}
    class_folders(tmp_path / "train", counts, size=32)
    class_folders(tmp_path / "test", dict.fromkeys(counts, 1), size=32)
    with zipfile.ZipFile(tmp_path / "c.zip", "w") as archive:
        for path in sorted(tmp_path.rglob("*.png")):
            archive.write(path, f"cifar10/{path.relative_to(tmp_path).as_posix()}")
        archive.writestr("__MACOSX/cifar10/._x.png", b"junk")
    plain = DATASETS["cifar10"](SourceOptions(root=tmp_path))
    packed = DATASETS["cifar10"](SourceOptions(root=tmp_path / "c.zip"))
    assert plain.train.fingerprint() == packed.train.fingerprint()
    assert np.array_equal(plain.train.read(np.arange(20)), packed.train.read(np.arange(20)))
    assert packed.files is not None
    assert (packed.files.used, [skip.reason for skip in packed.files.skipped]) == (30, ["hidden file"])


def test_the_real_cifar10_is_read_from_its_zip() -> None:
    if not CIFAR_ZIP.is_file():
        pytest.skip(f"no {CIFAR_ZIP}")
    bundle = DATASETS["cifar10"](SourceOptions(root=CIFAR_ZIP, storage="stream"))
    assert bundle.test is not None
    assert np.bincount(bundle.train.labels).tolist() == [5000] * 10
    assert np.bincount(bundle.test.labels).tolist() == [1000] * 10
    assert bundle.train.class_names[:3] == ("airplane", "automobile", "bird")
    picks = np.array([0, 12345, 49999])
    with zipfile.ZipFile(CIFAR_ZIP) as archive:
        for row, pick in zip(bundle.train.read(picks), picks, strict=True):
            with archive.open(f"cifar10/{bundle.train.ids[int(pick)]}") as file:
                np.testing.assert_array_equal(row.permute(1, 2, 0).numpy(), np.asarray(Image.open(file)))
