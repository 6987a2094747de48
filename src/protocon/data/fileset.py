"""From a list of image files to a data bundle: held-out test images, storage, damaged files."""

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from protocon.data.decode import decode_image, image_dimensions
from protocon.data.decoded_cache import cache_file, load_cached, save_cached
from protocon.data.holdout import hold_out
from protocon.data.imageset import ArrayImages, DataBundle, DataHints, FileImages, ImageSet, content_of_files
from protocon.data.options import SourceOptions
from protocon.data.report import FileReport, SkippedFile
from protocon.data.stores import BROKEN, FileEntry, FileStore, is_hidden
from protocon.errors import ConfigError, DataError

_SUFFIXES = frozenset(
    (
        ".jpg",
        ".jpeg",
        ".jpe",
        ".jfif",
        ".png",
        ".bmp",
        ".gif",
        ".webp",
        ".tif",
        ".tiff",
        ".ppm",
        ".pgm",
        ".pbm",
    )
)
_PROBED = 64
_LARGEST_DEFAULT = 224
_SHOWN_FAILURES = 5
_WORTH_A_THREAD = 16_384  # bytes: Pillow decodes without the interpreter's lock, but opens files with it


@dataclass(frozen=True)
class Members:
    """Files of a set with their labels, int64 (N,), −1 = unknown."""

    files: list[FileEntry]
    labels: np.ndarray

    def take(self, indices: np.ndarray) -> "Members":
        """The members at these positions."""
        return Members([self.files[int(i)] for i in indices], self.labels[indices])


@dataclass(frozen=True)
class FileListing:
    """What a source of image files found, before any of them is decoded."""

    name: str
    store: FileStore
    class_names: tuple[str, ...]
    train: Members
    test: Members | None
    skipped: list[SkippedFile]


def sort_out(entries: list[FileEntry]) -> tuple[list[FileEntry], list[SkippedFile]]:
    """Image files, and all others with the reason why they are not used. Judged by name and size only."""
    images: list[FileEntry] = []
    skipped: list[SkippedFile] = []
    for entry in entries:
        suffix = os.path.splitext(entry.path)[1].lower()  # noqa: PTH122  # a million times: ten times faster
        if is_hidden(entry.path):
            skipped.append(SkippedFile(entry.path, "hidden file"))
        elif suffix not in _SUFFIXES:
            skipped.append(SkippedFile(entry.path, f"not an image ({suffix or 'no suffix'})"))
        elif entry.size == BROKEN:
            skipped.append(SkippedFile(entry.path, "broken link"))
        elif entry.size == 0:
            skipped.append(SkippedFile(entry.path, "empty file"))
        else:
            images.append(entry)
    return images, skipped


def make_bundle(
    listing: FileListing, options: SourceOptions, *, default_size: int | None = None, flip: bool = True
) -> DataBundle:
    """Load what was listed: into memory if that is small enough, else to be decoded at every read.

    Without `image_size` and `default_size` the images get the median short side of a few of them, at
    most 224 pixels.
    """
    train, test = listing.train, listing.test
    if options.test_fraction is not None:
        if test is not None:
            raise ConfigError(
                f"test_fraction is given, but {listing.store.where} has a test set of its own. Remove it."
            )
        kept, held = hold_out(train.labels, options.test_fraction, seed=options.test_seed)
        train, test = train.take(kept), train.take(held)
    size = options.image_size or default_size or probe_size(listing.store, train.files)
    count = len(train.files) + (len(test.files) if test else 0)
    total = count * (1 if options.grey else 3) * size * size
    in_memory = options.storage == "memory" or (options.storage == "auto" and total <= options.memory_limit)
    skipped = list(listing.skipped)
    loader = _Loader(listing, options, size, in_memory, skipped)
    train_set = loader.load(train)
    test_set = loader.load(test) if test else None
    used = len(train_set) + (len(test_set) if test_set else 0)
    return DataBundle(train_set, test_set, DataHints(flip=flip), FileReport(used, tuple(skipped)))


@dataclass(frozen=True)
class _Loader:
    listing: FileListing
    options: SourceOptions
    size: int
    in_memory: bool
    skipped: list[SkippedFile]

    def load(self, members: Members) -> ImageSet:
        pixels: Tensor | None = None
        if self.in_memory or self.options.bad_files == "skip":
            pixels, members = self._decode(members)
        content = content_of_files(self.listing.store, members.files)
        ids = [entry.path for entry in members.files]
        names, name = self.listing.class_names, self.listing.name
        if pixels is not None:
            return ArrayImages(pixels, members.labels, names, name=name, ids=ids, content=content)
        return FileImages(
            self.listing.store,
            ids,
            members.labels,
            names,
            content=content,
            image_size=self.size,
            grey=self.options.grey,
            name=name,
        )

    def _decode(self, members: Members) -> tuple[Tensor | None, Members]:
        """Decode every file once: into one tensor if in memory, else only to find the damaged ones."""
        count = len(members.files)
        shape = (count, 1 if self.options.grey else 3, self.size, self.size)
        kept = self._cache_file(members)
        if kept is not None and (cached := load_cached(kept, shape)) is not None:
            return (cached if self.in_memory else None), members
        pixels = torch.empty(shape if self.in_memory else 0, dtype=torch.uint8)
        errors = self._decode_into(pixels, members)
        good = np.array([index for index, error in enumerate(errors) if error is None], dtype=np.int64)
        if len(good) < count:
            self._report(members, errors)
            members = members.take(good)
        if not len(good):
            raise DataError(f"{self.listing.store.where}: none of {count:,} files can be decoded.")
        if not self.in_memory:
            return None, members
        if len(good) < count:
            return pixels[torch.from_numpy(good)], members
        if kept is not None:
            save_cached(kept, pixels)
        return pixels, members

    def _cache_file(self, members: Members) -> Path | None:
        if self.options.cache is None:
            return None
        store, size, grey = self.listing.store, self.size, self.options.grey
        return cache_file(self.options.cache, store.where, members.files, size=size, grey=grey)

    def _decode_into(self, pixels: Tensor, members: Members) -> list[str | None]:
        """Decode each file into its row (if there are rows); return what went wrong with each."""
        store = self.listing.store

        def decode(index: int) -> str | None:
            path = members.files[index].path
            name = store.full_name(path)
            try:
                with store.open(path) as file:
                    image = decode_image(file, size=self.size, grey=self.options.grey, name=name)
            except DataError as error:
                return str(error)
            if len(pixels):
                pixels[index] = image
            return None

        mean_size = sum(entry.size for entry in members.files) / max(1, len(members.files))
        if mean_size < _WORTH_A_THREAD:
            return [decode(index) for index in range(len(members.files))]
        with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
            return list(pool.map(decode, range(len(members.files))))

    def _report(self, members: Members, errors: list[str | None]) -> None:
        failed = [(members.files[i].path, error) for i, error in enumerate(errors) if error is not None]
        if self.options.bad_files == "error":
            shown = "\n  ".join(error for _, error in failed[:_SHOWN_FAILURES])
            more = len(failed) - _SHOWN_FAILURES
            raise DataError(
                f"{len(failed):,} of {len(errors):,} files cannot be decoded:\n  {shown}"
                + (f"\n  and {more:,} more" if more > 0 else "")
                + "\nTo leave them out, set bad_files to skip."
            )
        self.skipped.extend(SkippedFile(path, f"cannot be decoded: {error}") for path, error in failed)


def probe_size(store: FileStore, files: list[FileEntry]) -> int:
    """Median short side of up to 64 images spread over the list, at most 224 pixels."""
    step = max(1, len(files) // _PROBED)
    sides: list[int] = []
    for entry in files[::step][:_PROBED]:
        try:
            with store.open(entry.path) as file:
                sides.append(min(image_dimensions(file, name=store.full_name(entry.path))))
        except DataError:
            continue  # reported with its reason when it is decoded
    if not sides:
        return _LARGEST_DEFAULT
    return min(_LARGEST_DEFAULT, int(np.median(sides)))
