"""What the encoder sees of a folder: features that arrive chunk by chunk, from the cache or computed.

Files are encoded in segments. The first holds about a hundred files from all over the folder, so that labelling can
begin with them; the second all others, a later one those that were added since. Which segments a folder has is kept
beside the features, so that a restart computes nothing twice although the folder grew.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from protocon.augment.clean import CLEAN
from protocon.base.atomic import write_bytes
from protocon.base.parts import Parts
from protocon.data.files.decode import decode_image
from protocon.data.files.stores import FileEntry, FileStore, FolderStore
from protocon.data.imageset import UNKNOWN, FileImages
from protocon.errors import DataError, ProtoConError
from protocon.features.extract import FrozenEncoder, feature_table, fill
from protocon.features.feature_table import FeatureTable
from protocon.labeller.photos import Photos

_GREY = 128
FIRST = 96
"""Images of the first segment."""
TOGETHER = 20_000
"""Up to so many images whose features are in the cache are delivered at once: to take them in is a matter of seconds,
and a model of the first segment alone would know less than that of an earlier time."""

MakeEncoder = Callable[[], FrozenEncoder]
"""Loads the encoder, which may take seconds."""


Deliver = Callable[[np.ndarray, np.ndarray], None]
"""Takes numbers (n,) and features (n, D)."""


class Readable(FileImages):
    """Files of a segment; one that cannot be decoded is grey, so that it holds nobody up.

    Args:
        store: that holds the files.
        files: which of them.
        image_size: side of the decoded images.
    """

    def __init__(self, store: FileStore, files: Sequence[FileEntry], *, image_size: int) -> None:
        facts = json.dumps(["whole", *(list(entry) for entry in files)]).encode()
        super().__init__(
            store,
            [entry.path for entry in files],
            np.full(len(files), UNKNOWN),
            (),
            content=hashlib.sha256(facts).hexdigest(),  # paths, sizes and stamps: nothing needs to be read
            image_size=image_size,
            squash=True,  # a frozen encoder sees whole images
        )

    def read(self, indices: np.ndarray) -> Tensor:
        """uint8 (n, 3, size, size)."""
        images = torch.full((len(indices), *self.shape), _GREY, dtype=torch.uint8)
        for row, index in enumerate(indices):
            path = self.ids[int(index)]
            try:
                with self.store.open(path) as file:
                    name = self.store.full_name(path)
                    images[row] = decode_image(file, size=self.image_size, squash=self.squash, name=name)
            except (ProtoConError, OSError):
                continue  # the page says so when it is to be shown
        return images


@dataclass(frozen=True)
class Segment:
    """Some files with the table of their features."""

    numbers: np.ndarray
    """Of each row; −1 where the file is there no more."""
    images: Readable
    table: FeatureTable


class Sight:
    """Features of a folder's images as they arrive. Used by one thread.

    Args:
        photos: the images.
        make_encoder: called once, when the first feature is needed.
        image_size: side at which images are looked at.
        cache: folder that holds tables of features.
    """

    def __init__(self, photos: Photos, make_encoder: MakeEncoder, *, image_size: int, cache: Path) -> None:
        self.photos = photos
        self.image_size = image_size
        self.cache = cache
        self._make = make_encoder
        self._encoder: FrozenEncoder | None = None
        self._delivered: set[int] = set()
        name = hashlib.sha256(f"{photos.root.resolve()} {image_size}".encode("utf-8", "surrogateescape")).hexdigest()
        self._record = cache / f"label-{name[:24]}.json"

    def look(self, deliver: Deliver) -> None:
        """Deliver features of all files that were not delivered before: those in the cache first, then chunk by chunk.

        Whatever `deliver` raises ends it; what was computed is kept.
        """

        def hand_over(parts: Sequence[tuple[np.ndarray, np.ndarray]]) -> None:
            numbers = np.concatenate([numbers for numbers, _ in parts])
            deliver(numbers, np.concatenate([features for _, features in parts]))
            self._delivered.update(numbers.tolist())

        encoder = self._ready()
        waiting = []
        cached: list[tuple[np.ndarray, np.ndarray]] = []
        for files, numbers in self._segments():
            segment = self._segment(files, numbers, encoder)
            missing = segment.table.missing()
            wanted = [n for n in range(segment.table.chunks) if (segment.numbers[segment.table.rows(n)] >= 0).any()]
            there = [_read(segment, chunk) for chunk in sorted(set(wanted) - set(missing))]
            if cached and sum(len(rows) for rows, _ in [*cached, *there]) > TOGETHER:
                hand_over(cached)
                cached = []
            cached += there
            waiting.append((segment, [chunk for chunk in missing if chunk in wanted]))
        if cached:
            hand_over(cached)
        for segment, missing in waiting:
            coming = iter(missing)

            def done(_count: int, segment: Segment = segment, coming: Iterator[int] = coming) -> None:
                hand_over([_read(segment, next(coming))])

            fill(segment.table, segment.images, encoder, [CLEAN], seed=0, chunks=missing, done=done)

    def _segments(self) -> list[tuple[list[FileEntry], list[int]]]:
        """Lists of files with their numbers, −1 for those that are there no more or were delivered before."""
        fresh = [n for n in range(len(self.photos)) if n not in self._delivered and n not in self.photos.gone]
        places = {self.photos.files[n]: n for n in fresh}
        remembered = list(self._remembered())
        found = [(files, [places.pop(entry, -1) for entry in files]) for files in remembered]
        fresh_segments = _first_and_rest(places) if not remembered else [places] if places else []
        if fresh_segments:
            found += [(list(part), list(part.values())) for part in fresh_segments]
            self._remember([*remembered, *(list(part) for part in fresh_segments)])
        return [(files, numbers) for files, numbers in found if max(numbers) >= 0]

    def _segment(self, files: Sequence[FileEntry], numbers: Sequence[int], encoder: FrozenEncoder) -> Segment:
        images = Readable(FolderStore(self.photos.root), files, image_size=self.image_size)
        # In half precision, as `train` and `pick` keep their views: what they have is not computed again, nor is this.
        table = feature_table(images, encoder, [CLEAN], seed=0, cache=self.cache, precision="half")
        return Segment(np.array(numbers, dtype=np.int64), images, table)

    @property
    def parts(self) -> Parts | None:
        """What the encoder's features consist of, once it is loaded."""
        return None if self._encoder is None else self._encoder.parts

    def _ready(self) -> FrozenEncoder:
        if self._encoder is None:
            self._encoder = self._make()
        return self._encoder

    def _remembered(self) -> Iterator[list[FileEntry]]:
        """Segments of an earlier time, of which a file is still there."""
        present = set(self.photos.files)
        try:
            content = json.loads(self._record.read_text(encoding="utf-8"))
            lists = [[FileEntry(str(p), int(s), int(t)) for p, s, t in files] for files in content]
        except (OSError, ValueError, TypeError):
            return
        yield from (files for files in lists if files and not present.isdisjoint(files))

    def _remember(self, lists: Sequence[Sequence[FileEntry]]) -> None:
        try:
            self.cache.mkdir(parents=True, exist_ok=True)
            write_bytes(self._record, json.dumps(lists).encode())
        except (OSError, ProtoConError) as error:
            raise DataError(f"features cannot be kept in {self.cache}: {error}. Choose another with --cache") from error


def _first_and_rest(places: dict[FileEntry, int]) -> list[dict[FileEntry, int]]:
    """A few files, spread evenly over all, and the rest; all of them together where there are not many."""
    if len(places) < 2 * FIRST:
        return [places] if places else []
    files = list(places)
    first = [files[position * len(files) // FIRST] for position in range(FIRST)]
    chosen = set(first)
    rest = [entry for entry in files if entry not in chosen]
    return [{entry: places[entry] for entry in part} for part in (first, rest)]


def _read(segment: Segment, chunk: int) -> tuple[np.ndarray, np.ndarray]:
    rows = segment.table.rows(chunk)
    numbers = segment.numbers[rows]
    values = segment.table.open()[rows, 0].numpy()
    there = numbers >= 0
    return numbers[there], np.ascontiguousarray(values[there])
