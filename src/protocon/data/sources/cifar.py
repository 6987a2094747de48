"""CIFAR-10 and CIFAR-100 in the forms in which they are found.

Python batches (cifar-10-batches-py/, cifar-100-python/), binary batches (cifar-10-batches-bin/,
cifar-100-binary/), either of them as .tar.gz, or images in class folders, also zipped.
"""

import tarfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import numpy as np
import torch

from protocon.data.files.digests import content_of
from protocon.data.files.places import need_root, open_store, wrong_place
from protocon.data.files.resize_arrays import resize_images
from protocon.data.imageset import ArrayImages, DataBundle, DataHints
from protocon.data.source_options import FILE_OPTIONS, SourceOptions
from protocon.data.sources.cifar_pickle import read_batch
from protocon.data.sources.class_folders import list_class_folders
from protocon.data.sources.listing import make_bundle
from protocon.errors import DataError

_PIXELS = 3 * 32 * 32
_MAX_BATCH_BYTES = 2**28  # the largest real one has 160 MB


@dataclass(frozen=True)
class _Kind:
    """What tells one of the two datasets from the other on disk."""

    name: str
    classes: int
    train: tuple[str, ...]
    test: tuple[str, ...]
    meta: str
    """Python meta file."""
    labels_key: str
    names_key: str
    names_file: str
    """Class names beside the binary batches."""
    label_bytes: int
    """Bytes before the pixels of a binary record; the last is the class."""
    folders: tuple[str, ...]
    archives: tuple[str, ...]


_CIFAR10 = _Kind(
    name="cifar10",
    classes=10,
    train=tuple(f"data_batch_{i}" for i in range(1, 6)),
    test=("test_batch",),
    meta="batches.meta",
    labels_key="labels",
    names_key="label_names",
    names_file="batches.meta.txt",
    label_bytes=1,
    folders=("cifar-10-batches-py", "cifar-10-batches-bin"),
    archives=("cifar-10-python.tar.gz", "cifar-10-binary.tar.gz"),
)
_CIFAR100 = _Kind(
    name="cifar100",
    classes=100,
    train=("train",),
    test=("test",),
    meta="meta",
    labels_key="fine_labels",
    names_key="fine_label_names",
    names_file="fine_label_names.txt",
    label_bytes=2,
    folders=("cifar-100-python", "cifar-100-binary"),
    archives=("cifar-100-python.tar.gz", "cifar-100-binary.tar.gz"),
)

_Read = Callable[[str], bytes | None]
"""The bytes of a batch file by its name, or None if it is not there."""


def cifar10(options: SourceOptions) -> DataBundle:
    """50,000 training and 10,000 test images of 32×32 in 10 classes."""
    return _cifar(_CIFAR10, options)


def cifar100(options: SourceOptions) -> DataBundle:
    """50,000 training and 10,000 test images of 32×32 in 100 (fine) classes."""
    return _cifar(_CIFAR100, options)


def _cifar(kind: _Kind, options: SourceOptions) -> DataBundle:
    expected = (
        f"{kind.folders[0]}/, {kind.folders[1]}/, {kind.archives[0]}, {kind.archives[1]}, "
        "train/<class>/*.png with test/<class>/*.png, or a zip of those class folders"
    )
    root = need_root(options, kind.name, expected)
    read = _find_batches(kind, root)
    if read is not None:
        options.accept_only(kind.name, "root", "image_size")
        return _from_batches(kind, read, options, root)
    options.accept_only(kind.name, *FILE_OPTIONS)
    if (root / "train").is_dir() or root.suffix.lower() == ".zip":
        listing = list_class_folders(kind.name, open_store(root, kind.name, expected))
        found = len(listing.class_names)
        if found == kind.classes and listing.test is not None:
            return make_bundle(listing, options, default_size=32)
        raise DataError(
            f"Dataset {kind.name!r}: {root} has {found} class folders and "
            f"{'no test images' if listing.test is None else 'test images'}; expected {kind.classes} classes "
            "with train/ and test/. For other images use the dataset 'imagefolder'."
        )
    get = "Get it from https://www.cs.toronto.edu/~kriz/cifar.html."
    raise wrong_place(root, kind.name, expected, get)


def _find_batches(kind: _Kind, root: Path) -> _Read | None:
    """A reader of batch files: in root itself, in one of its folders, or in a tar archive."""
    if root.is_file():
        return None if root.suffix.lower() == ".zip" else _tar_reader(kind, root)
    for folder in (root, *(root / name for name in kind.folders)):
        if any((folder / (kind.train[0] + suffix)).is_file() for suffix in ("", ".bin")):
            return _folder_reader(folder)
    for archive in (root / name for name in kind.archives):
        if archive.is_file():
            return _tar_reader(kind, archive)
    return None


def _folder_reader(folder: Path) -> _Read:
    return lambda name: (folder / name).read_bytes() if (folder / name).is_file() else None


def _tar_reader(kind: _Kind, archive: Path) -> _Read:
    """Read the wanted members into memory in one pass; nothing is unpacked to disk."""
    batches = (*kind.train, *kind.test)
    wanted = {*batches, *(name + ".bin" for name in batches), kind.meta, kind.names_file}
    found: dict[str, bytes] = {}
    try:
        with tarfile.open(archive) as tar:
            for member in tar:
                name = PurePosixPath(member.name).name
                file = tar.extractfile(member) if member.isfile() and name in wanted else None
                if file is None:
                    continue
                if member.size > _MAX_BATCH_BYTES:
                    raise DataError(f"{archive}: {member.name} has {member.size:,} bytes, too many for a batch.")
                found[name] = file.read()
    except (OSError, EOFError, zlib.error, tarfile.TarError) as error:
        raise DataError(f"{archive} is not a complete tar archive: {error}. Fetch it again.") from error
    return found.get


def _from_batches(kind: _Kind, read: _Read, options: SourceOptions, root: Path) -> DataBundle:
    binary = read(kind.train[0]) is None
    batch = _binary_batch if binary else _python_batch
    class_names = _binary_names(kind, read, root) if binary else _python_names(kind, read, root)

    def part(which: str, files: Sequence[str]) -> ArrayImages:
        parts = []
        for name in files:
            data = read(name + ".bin" if binary else name)
            if data is None:
                raise DataError(f"{root}: the batch file {name} is missing. Fetch the archive again.")
            parts.append(batch(kind, data, f"{root}: {name}"))
        images = torch.from_numpy(np.concatenate([images for images, _ in parts]).reshape(-1, 3, 32, 32))
        labels = np.concatenate([labels for _, labels in parts])
        ids = (f"{which}/{i}" for i in range(len(labels)))
        resized = images if options.image_size is None else resize_images(images, options.image_size)
        return ArrayImages(resized, labels, class_names, name=kind.name, ids=ids, content=content_of(images))

    return DataBundle(part("train", kind.train), part("test", kind.test), DataHints(flip=True))


def _python_batch(kind: _Kind, data: bytes, name: str) -> tuple[np.ndarray, np.ndarray]:
    content = read_batch(data, name)
    images, labels = content.get("data"), content.get(kind.labels_key)
    if not isinstance(images, np.ndarray) or images.ndim != 2 or images.shape[1] != _PIXELS:
        raise DataError(f"{name} has no 'data' of shape (n, {_PIXELS}); is this {kind.name}?")
    if not isinstance(labels, list) or not all(type(label) is int for label in labels):
        raise DataError(f"{name} has no list of whole numbers {kind.labels_key!r}; is this {kind.name}?")
    if len(labels) != len(images):
        raise DataError(f"{name} has {len(images)} images but {len(labels)} labels. Fetch it again.")
    return images, np.array(labels, dtype=np.int64)


def _python_names(kind: _Kind, read: _Read, root: Path) -> tuple[str, ...]:
    data = read(kind.meta)
    if data is None:
        raise DataError(f"{root}: the file {kind.meta} with the class names is missing.")
    names = read_batch(data, f"{root}: {kind.meta}").get(kind.names_key)
    if not isinstance(names, list):
        raise DataError(f"{root}: {kind.meta} has no list {kind.names_key!r}; is this {kind.name}?")
    return tuple(name.decode() if isinstance(name, bytes) else str(name) for name in names)


def _binary_batch(kind: _Kind, data: bytes, name: str) -> tuple[np.ndarray, np.ndarray]:
    record = kind.label_bytes + _PIXELS
    if not data or len(data) % record:
        raise DataError(f"{name} has {len(data):,} bytes, not a multiple of {record}; is this {kind.name}?")
    records = np.frombuffer(data, dtype=np.uint8).reshape(-1, record)
    return records[:, kind.label_bytes :], records[:, kind.label_bytes - 1].astype(np.int64)


def _binary_names(kind: _Kind, read: _Read, root: Path) -> tuple[str, ...]:
    data = read(kind.names_file)
    if data is None:
        raise DataError(f"{root}: the file {kind.names_file} with the class names is missing.")
    return tuple(line.strip() for line in data.decode().splitlines() if line.strip())
