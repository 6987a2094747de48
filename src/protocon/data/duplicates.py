"""Images that are the same: as bytes, as pixels, or as the network sees them."""

import hashlib
from collections import defaultdict
from dataclasses import dataclass
from typing import Literal

import numpy as np

from protocon.data.files.decode import MAX_PIXELS, decode_with_facts
from protocon.data.files.stores import FileStore
from protocon.data.imageset import UNKNOWN, DataBundle, ImageSet
from protocon.data.source_options import Progress
from protocon.errors import DataError

_CHUNK = 256

Part = Literal["labelled", "unlabelled", "test"]


@dataclass(frozen=True)
class Copy:
    """One of several images that are the same."""

    file: str
    part: Part
    label: str | None


@dataclass(frozen=True)
class Duplicates:
    """Images that are the same."""

    copies: tuple[Copy, ...]
    kind: str
    """`same bytes`, `same pixels`, or `same at 32 × 32 pixels`: at the size that training sees."""

    def warnings(self) -> list[str]:
        """What such copies spoil."""
        labels = sorted({copy.label for copy in self.copies if copy.label is not None})
        parts = {copy.part for copy in self.copies}
        found = []
        if len(labels) > 1:
            found.append(f"they have different labels: {', '.join(labels)}")
        if "test" in parts and len(parts) > 1:
            found.append("some are trained on and some tested on, so the test accuracy will be too high")
        if {"labelled", "unlabelled"} <= parts:
            found.append("some are labelled and some are not")
        return found


def find_duplicates(
    bundle: DataBundle, labelled: np.ndarray, *, store: FileStore | None = None, progress: Progress | None = None
) -> list[Duplicates]:
    """Groups of images that are the same to the network; the closest way in which all of a group are the same.

    Args:
        bundle: training and test images.
        labelled: positions of the labelled training images.
        store: where the files are, to tell same bytes from same pixels.
        progress: told how far it is.
    """
    marked = np.zeros(len(bundle.train), dtype=bool)
    marked[labelled] = True
    groups: dict[bytes, list[Copy]] = defaultdict(list)
    total = len(bundle.train) + (len(bundle.test) if bundle.test else 0)
    done = 0
    for images in filter(None, (bundle.train, bundle.test)):
        for start in range(0, len(images), _CHUNK):
            index = np.arange(start, min(start + _CHUNK, len(images)))
            for position, row in zip(index, images.read(index), strict=True):
                key = hashlib.blake2b(np.ascontiguousarray(row.numpy()).data, digest_size=16).digest()
                part: Part = "test" if images is bundle.test else "labelled" if marked[position] else "unlabelled"
                groups[key].append(Copy(images.ids[int(position)], part, _label(images, int(position))))
            done += len(index)
            if progress is not None:
                progress("comparing images", done, total)
    shape = bundle.train.shape
    seen = "same numbers" if len(shape) == 1 else f"same at {shape[-1]} × {shape[-2]} pixels"
    return [
        Duplicates(tuple(copies), seen if store is None else _kind(store, copies, seen))
        for copies in groups.values()
        if len(copies) > 1
    ]


def _label(images: ImageSet, position: int) -> str | None:
    label = int(images.labels[position])
    return None if label == UNKNOWN else images.class_names[label]


def _kind(store: FileStore, copies: list[Copy], seen: str) -> str:
    """How much the same they are."""
    try:
        digests = set()
        for copy in copies:
            with store.open(copy.file) as file:
                digests.add(hashlib.sha256(file.read()).digest())
        if len(digests) == 1:
            return "same bytes"
        pixels = set()
        for copy in copies:
            with store.open(copy.file) as file:
                _, facts = decode_with_facts(file, size=1, name=copy.file)
                if facts.width * facts.height > MAX_PIXELS:
                    return seen
                file.seek(0)
                whole, _ = decode_with_facts(file, size=min(facts.width, facts.height), name=copy.file)
            pixels.add((facts.width, facts.height, hashlib.sha256(whole.numpy().tobytes()).digest()))
    except DataError:
        return seen
    return "same pixels" if len(pixels) == 1 else seen
