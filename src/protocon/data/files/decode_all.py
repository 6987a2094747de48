"""Every file of a list decoded once, before training: into memory, or only to find the damaged ones."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypedDict

import numpy as np
import torch
from torch import Tensor

from protocon.data.files.decode import MAX_PIXELS, decode_with_facts
from protocon.data.files.decoded_cache import cache_file, load_cached, save_cached
from protocon.data.files.digests import content_of
from protocon.data.files.file_record import DecodedRecord, RecordPlace, record_place
from protocon.data.files.file_report import ImageFacts, SkippedFile
from protocon.data.files.names import shown
from protocon.data.files.spool import Spool, spools_work
from protocon.data.files.stores import FileEntry, FileStore
from protocon.data.source_options import SourceOptions
from protocon.errors import DataError

_SHOWN_FAILURES = 5
_WORTH_A_THREAD = 16_384  # bytes: Pillow decodes without the interpreter's lock, but opens files with it
_TINY = 8
"""Images with a shorter side than this hardly show anything."""


class Manner(TypedDict):
    """How files are decoded."""

    size: int
    grey: bool
    squash: bool


@dataclass(frozen=True)
class Members:
    """Files of a set with their labels, int64 (N,), −1 = unknown."""

    files: list[FileEntry]
    labels: np.ndarray

    def take(self, indices: np.ndarray) -> "Members":
        """The members at these positions."""
        return Members([self.files[int(i)] for i in indices], self.labels[indices])


@dataclass(frozen=True)
class Decoded:
    """The members that can be used, and their pixels (N, C, H, W) unless they are read again at every step."""

    members: Members
    pixels: Tensor | None
    spool: Spool | None = None
    """Holds the pixels in the place of memory."""
    rows: np.ndarray | None = None
    """Rows of the spool."""
    digest: str | None = None
    """Hash of the pixels, where it is known."""

    def take(self, indices: np.ndarray) -> "Decoded":
        """The members at these positions."""
        pixels = None if self.pixels is None else self.pixels[torch.from_numpy(indices)]
        rows = None if self.rows is None else self.rows[indices]
        return Decoded(self.members.take(indices), pixels, self.spool, rows)

    def hashed(self) -> str:
        """Hash of the pixels; empty where they are not kept."""
        if self.pixels is not None:
            return content_of(self.pixels)
        return "" if self.spool is None or self.rows is None else self.spool.content(self.rows)


@dataclass
class Decoder:
    """Decodes lists of files, and gathers what is to be said of them."""

    store: FileStore
    options: SourceOptions
    class_names: tuple[str, ...]
    size: int
    in_memory: bool
    skipped: list[SkippedFile] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    facts: list[ImageFacts] = field(default_factory=list)
    """Of the files that could be decoded, where damaged ones are skipped."""

    def decode(self, members: Members) -> Decoded:
        """Decode every file once if they are held in memory or damaged ones are to be left out.

        With a record of the same files, unchanged, none is opened: what was found then is found again.
        """
        if not self.in_memory and self.options.bad_files != "skip":
            return Decoded(members, None)
        count = len(members.files)
        shape = (count, 1 if self.options.grey else 3, self.size, self.size)
        kept = self._cache_file(members)
        if kept is not None and (cached := load_cached(kept, shape)) is not None:
            return Decoded(members, cached if self.in_memory else None)
        place = self._record_place(members)
        record = None if place is None else place.load(members.files)
        if record is not None:
            usable = self._usable(Decoded(members, None), record.found)
            return replace(usable, digest=record.pixels or None)
        whole = self._room(members, shape)
        found = self._decode_into(whole, members)
        usable = self._usable(whole, found)
        if place is not None:
            usable = replace(usable, digest=usable.hashed() or None)
            place.save(DecodedRecord(found, usable.digest or ""))
        if kept is not None and usable.pixels is not None and len(usable.members.files) == count:
            save_cached(kept, usable.pixels)
        return usable

    def _room(self, members: Members, shape: tuple[int, ...]) -> Decoded:
        """A place for the pixels: memory; a file, where they will be looked at once more; or none."""
        if self.in_memory:
            return Decoded(members, torch.empty(shape, dtype=torch.uint8))
        if self.options.record is None or self.options.storage != "auto" or not spools_work():
            return Decoded(members, None)
        try:
            spool = Spool(self.options.record, shape[0], (shape[1], shape[2], shape[3]))
        except OSError:
            return Decoded(members, None)  # they are decoded again
        return Decoded(members, None, spool, np.arange(shape[0]))

    def _usable(self, whole: Decoded, found: tuple[ImageFacts | str, ...]) -> Decoded:
        """Without the files that cannot be decoded, which are reported."""
        errors = [one if isinstance(one, str) else None for one in found]
        if self.options.bad_files == "skip":
            self.facts.extend(one for one in found if isinstance(one, ImageFacts))
        good = np.array([index for index, error in enumerate(errors) if error is None], dtype=np.int64)
        if len(good) == len(errors):
            return whole
        self._report(whole.members, errors)
        if not len(good):
            raise DataError(f"{self.store.where}: none of {len(errors):,} files can be decoded.")
        return whole.take(good)

    def _record_place(self, members: Members) -> RecordPlace | None:
        if self.options.record is None or self.options.storage != "auto":
            return None
        return record_place(self.options.record, self.store, members.files, **self._manner)

    def _cache_file(self, members: Members) -> Path | None:
        if self.options.cache is None:
            return None
        return cache_file(self.options.cache, self.store.where, members.files, **self._manner)

    @property
    def _manner(self) -> Manner:
        """How files are decoded."""
        return {"size": self.size, "grey": self.options.grey, "squash": self.options.squash}

    def _decode_into(self, place: Decoded, members: Members) -> tuple[ImageFacts | str, ...]:
        """Decode each file into its row (if there are rows); return its facts, or what is wrong, without its name."""

        def decode(index: int) -> ImageFacts | str:
            path = members.files[index].path
            name = self.store.full_name(path)
            try:
                with self.store.open(path) as file:
                    image, facts = decode_with_facts(file, name=name, **self._manner)
            except DataError as error:
                return str(error).removeprefix(f"{name} ")
            if place.pixels is not None:
                place.pixels[index] = image
            elif place.spool is not None:
                place.spool.write(index, image)
            return replace(facts, path=path)

        found: list[ImageFacts | str] = []
        for done, one in enumerate(self._each(decode, members), start=1):
            found.append(one)
            if self.options.progress is not None:
                self.options.progress("reading images", done, len(members.files))
        return tuple(found)

    def _each(self, decode: Callable[[int], ImageFacts | str], members: Members) -> Iterator[ImageFacts | str]:
        count = len(members.files)
        if sum(entry.size for entry in members.files) < _WORTH_A_THREAD * count:
            yield from map(decode, range(count))
            return
        with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
            yield from pool.map(decode, range(count))

    def _report(self, members: Members, errors: list[str | None]) -> None:
        failed = [(index, error) for index, error in enumerate(errors) if error is not None]
        if self.options.bad_files != "skip":
            names = [f"{self.store.full_name(members.files[i].path)} {error}" for i, error in failed[:_SHOWN_FAILURES]]
            more = len(failed) - _SHOWN_FAILURES
            raise DataError(
                f"{len(failed):,} of {len(errors):,} files cannot be decoded:\n  "
                + "\n  ".join(map(shown, names))
                + (f"\n  and {more:,} more" if more > 0 else "")
                + "\nTo leave them out, set bad_files to skip."
            )
        for index, error in failed:
            path, label = members.files[index].path, int(members.labels[index])
            self.skipped.append(SkippedFile(path, error))
            if label >= 0:
                name = shown(self.class_names[label])
                self.warnings.append(f"{shown(path)} has the label {name}, but the file {error}")


def remarks(facts: list[ImageFacts], size: int) -> Iterator[str]:
    """A line for each used file that is not what one would expect of a picture."""
    for image in facts:
        name, shape = shown(image.path), f"{image.width} × {image.height}"
        if image.frames > 1 and image.format != "TIFF":
            yield f"{name} is an animation of {image.frames} frames; the first is used"
        elif image.frames > 1:
            yield f"{name} has {image.frames} pages; the first is used"
        if min(image.width, image.height) < min(_TINY, size):
            yield f"{name} has only {shape} pixels; it is enlarged to {size} × {size}"
        if image.width * image.height > MAX_PIXELS:
            yield f"{name} has {shape} pixels; it is decoded at a reduced size"
