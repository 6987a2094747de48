"""Loaded data in files that many processes map: decoded once, and in memory once."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from protocon.data.files.digests import content_of
from protocon.data.files.file_report import FileReport
from protocon.data.imageset import ArrayImages, DataBundle, DataHints, FeatureArray, ImageSet
from protocon.errors import DataError


@dataclass(frozen=True)
class SharedSet:
    """Images or embeddings in one file, and all else that is known of them. Small enough to hand to a process."""

    file: Path
    kind: type[ArrayImages] | type[FeatureArray]
    name: str
    class_names: tuple[str, ...]
    labels: np.ndarray
    ids: Sequence[str]
    content: str
    digest: str
    """Hash of the file's numbers."""

    def open(self) -> ImageSet:
        """The set, whose numbers are read from the file as they are needed. Writing to them does not reach it."""
        rows = torch.from_numpy(np.load(self.file, mmap_mode="c", allow_pickle=False))
        images = self.kind(rows, self.labels, self.class_names, name=self.name, ids=self.ids, content=self.content)
        images.digest = self.digest
        return images


@dataclass(frozen=True)
class SharedBundle:
    """A data bundle in files."""

    train: SharedSet
    test: SharedSet | None
    hints: DataHints
    files: FileReport | None

    def open(self) -> DataBundle:
        """The data as they were loaded."""
        test = None if self.test is None else self.test.open()
        return DataBundle(self.train.open(), test, self.hints, self.files)


def share(bundle: DataBundle, folder: Path) -> SharedBundle | None:
    """Write loaded data to a folder; None for data that are no arrays, which every process reads for itself."""
    train = _share(bundle.train, folder / "train.npy")
    test = None if bundle.test is None else _share(bundle.test, folder / "test.npy")
    if train is None or (test is None and bundle.test is not None):
        return None
    return SharedBundle(train, test, bundle.hints, bundle.files)


def _share(images: ImageSet, file: Path) -> SharedSet | None:
    if not isinstance(images, ArrayImages | FeatureArray):
        return None
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        np.save(file, images.tensor.numpy(), allow_pickle=False)
    except OSError as error:
        raise DataError(
            f"{file} cannot be written: {error.strerror or error}. It takes {images.nbytes / 2**20:.0f} MiB"
        ) from error
    return SharedSet(
        file=file,
        kind=type(images),
        name=images.name,
        class_names=images.class_names,
        labels=images.labels,
        ids=images.ids,
        content=images.content(),
        digest=content_of(images.tensor),
    )
