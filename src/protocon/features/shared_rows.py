"""Rows that other tables of the cache hold already: an image is encoded once, whatever set and command it is part of.

Only views without draws are shared. They depend on an image's pixels and on the encoder alone; what a drawn view shows
depends on the image's place in its set.
"""

import base64
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from torch import Tensor

from protocon.features.feature_table import ABOUT, FeatureTable, TableFacts, chunk_digest

_BYTES = 12
"""Of an image's digest: among ten million images, two are alike by chance once in 10¹⁵."""


def pixel_digests(images: Tensor) -> list[str]:
    """A short text for the pixels of each uint8 image (n, C, H, W)."""
    shape = str(tuple(images.shape[1:])).encode()
    rows = images.contiguous().numpy()
    digests = (hashlib.blake2b(row.data, digest_size=_BYTES, salt=shape[:16]).digest() for row in rows)
    return [base64.b64encode(digest).decode() for digest in digests]


@dataclass(frozen=True)
class Found:
    """Features of a view that were found for some of the images asked about."""

    known: np.ndarray
    """Which of them, bool (n,)."""
    rows: np.ndarray
    """Their features (n, D); rows of the others have no meaning."""


class SharedRows:
    """Features of single images in the other tables of a cache.

    Args:
        table: the one to be filled; its folder's neighbours are searched. One in full precision takes nothing from
            tables in half precision.
        shared: positions of the views that have no draws.
    """

    def __init__(self, table: FeatureTable, shared: Sequence[int]) -> None:
        self._width = table.shape[2]
        self._donors: list[_Donor] = []
        self._columns: dict[int, _Index] = {}
        if table.facts is None or not shared:
            return
        found = (_donor(folder, table) for folder in sorted(table.folder.parent.glob("features-*")))
        self._donors = [donor for donor in found if donor is not None]
        for column in shared:
            self._columns[column] = _Index(self._donors, table.facts.views[column])

    def find(self, digests: Sequence[str]) -> dict[int, Found]:
        """What is known of images with these digests: by the position of the view."""
        asked = np.array(digests, dtype="S16")
        return {column: self._find(index, asked) for column, index in self._columns.items() if len(index.digests)}

    def _find(self, index: "_Index", asked: np.ndarray) -> Found:
        places = np.searchsorted(index.digests, asked).clip(max=len(index.digests) - 1)
        known = index.digests[places] == asked
        rows = np.zeros((len(asked), self._width), dtype=np.float32)
        for number in np.flatnonzero(known):
            donor, row, column = index.places[places[number]]
            values = self._donors[donor].row(int(row), int(column))
            known[number] = values is not None
            if values is not None:
                rows[number] = values
        return Found(known, rows)


class _Index:
    """Digests of one view's images, sorted, with the place of each: donor, row, column."""

    def __init__(self, donors: Sequence["_Donor"], view: str) -> None:
        digests, places = [np.zeros(0, dtype="S16")], [np.zeros((0, 3), dtype=np.int64)]
        for number, donor in enumerate(donors):
            if view in donor.facts.views:
                column = donor.facts.views.index(view)
                digests.append(donor.digests)
                places.append(
                    np.stack([np.full_like(donor.rows, number), donor.rows, np.full_like(donor.rows, column)], 1)
                )
        joined, rows = np.concatenate(digests), np.concatenate(places)
        self.digests, first = np.unique(joined, return_index=True)
        self.places = rows[first]


class _Donor:
    """A table that may have what another one needs. A chunk is used only if its bytes have their digest."""

    def __init__(self, table: FeatureTable, facts: TableFacts) -> None:
        self.facts = facts
        self._table = table
        self._values = table.open().numpy()
        self._records = table.recorded()
        self._intact: dict[int, bool] = {}
        digests: list[str] = []
        rows: list[int] = []
        for chunk, record in self._records.items():
            span = table.rows(chunk)
            if 0 <= chunk < table.chunks and len(record.images) == span.stop - span.start:
                digests += record.images
                rows += range(span.start, span.stop)
        self.digests = np.array(digests, dtype="S16")
        self.rows = np.array(rows, dtype=np.int64)

    def row(self, row: int, column: int) -> np.ndarray | None:
        """Features (D,), or None where they are damaged."""
        chunk = row // self._table.chunk
        if chunk not in self._intact:
            found = chunk_digest(self._values[self._table.rows(chunk)])
            self._intact[chunk] = found == self._records[chunk].sha256
        values: np.ndarray = self._values[row, column]
        return values if self._intact[chunk] else None


def _donor(folder: Path, table: FeatureTable) -> _Donor | None:
    """The table in this folder, if it is of the same encoder and precise enough."""
    if folder == table.folder or table.facts is None:
        return None
    try:
        about = json.loads((folder / ABOUT).read_text(encoding="utf-8"))
        facts = TableFacts(str(about["encoder"]), tuple(map(str, about["views"])))
        images, views, width = (int(side) for side in about["shape"])
        dtype = np.dtype(str(about["dtype"]))
        fits = facts.encoder == table.facts.encoder and width == table.shape[2] and views == len(facts.views)
        if not fits or dtype.kind != "f" or dtype.itemsize < table.dtype.itemsize:
            return None
        return _Donor(FeatureTable(folder, shape=(images, views, width), dtype=dtype), facts)
    except Exception:  # gone, damaged or of another version: there is nothing to take from it
        return None
