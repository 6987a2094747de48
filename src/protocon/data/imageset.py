"""What a data source returns: images (or embeddings), what is known of them, and their fingerprint."""

import copy
import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from torch import Tensor

from protocon.data.files.decode import decode_image
from protocon.data.files.digests import content_of
from protocon.data.files.file_report import FileReport
from protocon.data.files.spool import Spool
from protocon.data.files.stores import FileEntry, FileStore
from protocon.data.files.strings import StringTable
from protocon.errors import DataError

UNKNOWN = -1
"""The label of an image whose class is not known."""

_HASHED_FILES = 64


class ImageSet(ABC):
    """N images of one shape, read by position. Nothing about it changes once it is made.

    Args:
        name: what messages call the set.
        class_names: in the order of the labels' numbers.
        labels: class of each image, −1 where unknown, (N,).
        ids: unique names; None: numbers.
    """

    name: str
    class_names: tuple[str, ...]
    labels: np.ndarray
    """int64 (N,); −1 = unknown."""
    ids: Sequence[str]
    """Stable and unique: the path within the source, or the number within its file."""
    shape: tuple[int, ...]
    """(C, H, W) of what `read` gives, or (D,) for embeddings."""
    in_memory: bool = True
    """Whether `read` is a mere copy; else it decodes files."""

    def __init__(self, *, name: str, class_names: Iterable[str], labels: np.ndarray, ids: Iterable[str] | None) -> None:
        self.name = name
        self.class_names = tuple(class_names)
        self.labels = np.ascontiguousarray(labels, dtype=np.int64)
        if ids is None:
            ids = map(str, range(len(self.labels)))
        self.ids = ids if isinstance(ids, StringTable) else StringTable(ids)
        self._check()

    def _check(self) -> None:
        if self.labels.ndim != 1 or not len(self.labels):
            raise DataError(f"{self.name}: labels of shape {self.labels.shape}; expected one for each image.")
        if len(self.ids) != len(self.labels) or len(set(self.ids)) != len(self.ids):
            raise DataError(
                f"{self.name}: {len(self.labels)} images need as many different ids; "
                f"got {len(self.ids)} ids, {len(set(self.ids))} of them different."
            )
        if len(set(self.class_names)) != len(self.class_names):
            raise DataError(f"{self.name}: class names repeat: {', '.join(self.class_names)}.")
        low, high = int(self.labels.min()), int(self.labels.max())
        if low < UNKNOWN or high >= len(self.class_names):
            raise DataError(
                f"{self.name}: labels run from {low} to {high}, but there are {len(self.class_names)} "
                f"classes; expected 0 to {len(self.class_names) - 1}, or −1 where the class is not known."
            )

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def nbytes(self) -> int:
        """Bytes of all images as `read` gives them."""
        item = 1 if len(self.shape) == 3 else 4
        return len(self) * int(np.prod(self.shape)) * item

    @abstractmethod
    def read(self, indices: np.ndarray) -> Tensor:
        """The images at these positions: uint8 (n, C, H, W), or float32 (n, D)."""

    def subset(self, indices: np.ndarray) -> Self:
        """The images at these positions, in this order, as a set of their own."""
        chosen = copy.copy(self)
        chosen.labels = self.labels[indices]
        chosen.ids = StringTable(self.ids[int(i)] for i in indices)
        chosen._check()
        return chosen

    @abstractmethod
    def content(self) -> str:
        """Hash of the images as the source holds them, before any resizing."""

    def fingerprint(self) -> str:
        """sha256 over ids, labels, class names and content: the same data gives the same text anywhere.

        The size that images are resized to is left out on purpose, and so is whether they are held in
        memory: one label split serves every encoder.
        """
        digest = hashlib.sha256()
        names = StringTable(self.class_names)
        ids = self.ids if isinstance(self.ids, StringTable) else StringTable(self.ids)
        parts = (*ids.buffers(), self.labels.tobytes(), *names.buffers(), self.content().encode())
        for part in parts:
            digest.update(len(part).to_bytes(8, "little"))  # so that no two parts can run together
            digest.update(part)
        return digest.hexdigest()


class _TensorSet(ImageSet):
    """Images that are rows of one tensor."""

    def __init__(
        self,
        rows: Tensor,
        labels: np.ndarray | None,
        class_names: Iterable[str],
        *,
        name: str,
        ids: Iterable[str] | None,
        content: str | None,
    ) -> None:
        if labels is None:
            labels = np.full(len(rows), UNKNOWN)
        if len(labels) != len(rows):
            raise DataError(f"{name}: {len(rows)} images but {len(labels)} labels; expected one each.")
        super().__init__(name=name, class_names=class_names, labels=labels, ids=ids)
        self.tensor = rows.contiguous()
        self.digest: str | None = None  # hash of the tensor, where somebody has made it already
        self.shape = tuple(rows.shape[1:])
        self._content = content

    def read(self, indices: np.ndarray) -> Tensor:
        return self.tensor[torch.from_numpy(np.asarray(indices, dtype=np.int64))]

    def content(self) -> str:
        if self._content is None:
            self._content = content_of(self.tensor)
        return self._content

    def subset(self, indices: np.ndarray) -> Self:
        chosen = super().subset(indices)
        chosen.tensor = self.read(indices)
        chosen.digest = None
        chosen._content = None if self._content is None else _content_of_part(self._content, indices)
        return chosen


class ArrayImages(_TensorSet):
    """uint8 images (N, C, H, W) in memory, C in {1, 3}.

    Args:
        images: as above.
        labels: class of each, −1 where unknown, (N,); None: all unknown.
        class_names: in the order of the labels' numbers.
        name: what messages call the set.
        ids: unique names; numbers by default.
        content: hash of the source's own data, for images that were resized or decoded from files; None hashes the
            images themselves.
    """

    def __init__(
        self,
        images: Tensor | np.ndarray,
        labels: np.ndarray | None = None,
        class_names: Iterable[str] = (),
        *,
        name: str = "arrays",
        ids: Iterable[str] | None = None,
        content: str | None = None,
    ) -> None:
        rows = torch.as_tensor(images)
        if rows.dtype != torch.uint8 or rows.dim() != 4 or rows.shape[1] not in (1, 3):
            raise DataError(
                f"{name}: images of type {rows.dtype} and shape {tuple(rows.shape)}; "
                "expected uint8 (N, C, H, W) with 1 or 3 channels."
            )
        super().__init__(rows, labels, class_names, name=name, ids=ids, content=content)


class FeatureArray(_TensorSet):
    """Embeddings float32 (N, D) in memory, all finite.

    Args:
        features: as above.
        labels: class of each, −1 where unknown, (N,); None: all unknown.
        class_names: in the order of the labels' numbers.
        name: what messages call the set.
        ids: unique names; numbers by default.
        content: hash of the source's own data; None hashes the features themselves.
    """

    def __init__(
        self,
        features: Tensor | np.ndarray,
        labels: np.ndarray | None = None,
        class_names: Iterable[str] = (),
        *,
        name: str = "features",
        ids: Iterable[str] | None = None,
        content: str | None = None,
    ) -> None:
        rows = torch.as_tensor(features).to(torch.float32)
        if rows.dim() != 2:
            raise DataError(f"{name}: features of shape {tuple(rows.shape)}; expected (N, D).")
        bad = (~torch.isfinite(rows)).any(dim=1).nonzero().flatten()
        if len(bad):
            raise DataError(
                f"{name}: {len(bad)} rows hold NaN or infinity, the first is row {int(bad[0])}. Remove or repair them."
            )
        super().__init__(rows, labels, class_names, name=name, ids=ids, content=content)


class FileImages(ImageSet):
    """Image files that are decoded at every read, to (1 or 3, size, size).

    Args:
        store: that holds the files.
        ids: their paths in it.
        labels: class of each, −1 where unknown, (N,).
        class_names: in the order of the labels' numbers.
        content: hash of what the files hold.
        image_size: side of the decoded images.
        grey: one channel instead of three.
        squash: the whole of each picture, whatever its aspect ratio, instead of its centre.
        name: what messages call the set.
        digest: hash of the pixels, where it is known already.
    """

    in_memory = False

    def __init__(
        self,
        store: FileStore,
        ids: Iterable[str],
        labels: np.ndarray,
        class_names: Iterable[str],
        *,
        content: str,
        image_size: int,
        grey: bool = False,
        squash: bool = False,
        name: str = "files",
        digest: str | None = None,
    ) -> None:
        super().__init__(name=name, class_names=class_names, labels=labels, ids=ids)
        self.store = store
        self._content = content
        self.digest = digest  # hash of the pixels, where somebody has made it already
        self.image_size = image_size
        self.grey = grey
        self.squash = squash
        self.shape = (1 if grey else 3, image_size, image_size)

    def read(self, indices: np.ndarray) -> Tensor:
        """Decode the files at these positions: uint8 (n, C, size, size)."""
        images = torch.empty((len(indices), *self.shape), dtype=torch.uint8)
        for row, index in enumerate(indices):
            path = self.ids[int(index)]
            with self.store.open(path) as file:
                name = self.store.full_name(path)
                images[row] = decode_image(file, size=self.image_size, grey=self.grey, squash=self.squash, name=name)
        return images

    def subset(self, indices: np.ndarray) -> Self:
        """The files at these positions, in this order, as a set of their own."""
        chosen = super().subset(indices)
        chosen._content = _content_of_part(self._content, indices)
        chosen.digest = None
        return chosen

    def content(self) -> str:
        """Hash of the files, as `content_of_files` makes it."""
        return self._content


class SpooledImages(ImageSet):
    """uint8 images (N, C, H, W) that lie in a spool.

    Args:
        spool: holds the pixels.
        rows: of the spool, (N,).
        labels: int64 (N,), −1 = unknown.
        class_names: of the classes.
        name: of the set.
        ids: of the images.
        content: hash of the source's own data.
        digest: hash of the pixels, as `content_of` makes it.
    """

    in_memory = False

    def __init__(
        self,
        spool: Spool,
        rows: np.ndarray,
        labels: np.ndarray,
        class_names: Iterable[str],
        *,
        name: str,
        ids: Iterable[str],
        content: str,
        digest: str | None,
    ) -> None:
        super().__init__(name=name, class_names=class_names, labels=labels, ids=ids)
        self._spool = spool
        self._rows = np.asarray(rows, dtype=np.int64)
        self._content = content
        self.digest = digest
        self.shape = spool.shape

    def read(self, indices: np.ndarray) -> Tensor:
        """The images at these positions."""
        return self._spool.read(self._rows[np.asarray(indices, dtype=np.int64)])

    def subset(self, indices: np.ndarray) -> Self:
        """The images at these positions, in this order, as a set of their own."""
        chosen = super().subset(indices)
        chosen._rows = self._rows[np.asarray(indices, dtype=np.int64)]
        chosen._content = _content_of_part(self._content, indices)
        chosen.digest = None
        return chosen

    def content(self) -> str:
        """Hash of the files, as `content_of_files` makes it."""
        return self._content


def content_of_files(store: FileStore, files: Sequence[FileEntry]) -> str:
    """Hash of all files' sizes, and of the bytes of up to 64 of them spread over the list.

    Reading a million files to hash them would take longer than an epoch. This tells data sets apart, and
    notices nearly every change; it can miss one file replaced by another of exactly its size.
    """
    digest = hashlib.sha256(np.array([entry.size for entry in files], dtype=np.int64).tobytes())
    for entry in files[:: max(1, -(-len(files) // _HASHED_FILES))]:
        with store.open(entry.path) as file:
            digest.update(hashlib.sha256(file.read()).digest())
    return digest.hexdigest()


def _content_of_part(content: str, indices: np.ndarray) -> str:
    return f"{content}:{content_of(np.asarray(indices, dtype=np.int64))}"


@dataclass(frozen=True)
class DataHints:
    """What a source knows of its images that a set of views needs."""

    flip: bool
    """Whether a mirrored image is still of its class: not so for digits."""


@dataclass(frozen=True)
class DataBundle:
    """What a data source returns."""

    train: ImageSet
    test: ImageSet | None
    hints: DataHints
    files: FileReport | None = None
    """What became of every file, for sources that search folders."""

    def __post_init__(self) -> None:
        if self.test is None:
            return
        if self.test.class_names != self.train.class_names or self.test.shape != self.train.shape:
            raise DataError(
                f"{self.train.name}: training and test images must agree; got shapes {self.train.shape} and "
                f"{self.test.shape}, {len(self.train.class_names)} and {len(self.test.class_names)} classes."
            )
