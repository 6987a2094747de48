"""A table of features on disk that is filled in chunks and knows which of them are complete.

Three files in a folder of its own: `features.npy`, which can be mapped into memory; `chunks.jsonl`, a line for each
chunk that was written, with its digest and those of its images; and `about.json`, which says of which encoder and views
the features are, so that other tables can take rows from this one. A chunk counts only if its bytes still have that
digest, so an interrupted run, a flipped byte and a truncated file have the same effect: the missing chunks are computed
again.
"""

import errno
import hashlib
import json
import math
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from protocon.errors import DataError

ABOUT = "about.json"
CHUNK = 256
"""Images per chunk: the most that is lost when a computation is interrupted."""


@dataclass(frozen=True)
class TableFacts:
    """What a row depends on besides its image."""

    encoder: str
    """Hash of the encoder's name, weights and normalisation."""
    views: tuple[str, ...]
    """Each view with its settings."""


@dataclass(frozen=True)
class ChunkRecord:
    """A chunk that was written."""

    sha256: str
    """Of its bytes."""
    images: tuple[str, ...]
    """A digest of each image's pixels; empty in tables of older versions."""


class FeatureTable:
    """Rows of `features.npy` in one folder.

    Args:
        folder: made if it is not there.
        shape: (N, V, D).
        dtype: of the numbers.
        chunk: rows that are written and checked together.
        facts: what its rows depend on; without them, no other table takes rows from this one.
    """

    def __init__(
        self,
        folder: Path,
        *,
        shape: tuple[int, int, int],
        dtype: np.dtype,
        chunk: int = CHUNK,
        facts: TableFacts | None = None,
    ) -> None:
        self.folder = folder
        self.shape = shape
        self.dtype = dtype
        self.chunk = chunk
        self.facts = facts
        self.file = folder / "features.npy"
        self.log = folder / "chunks.jsonl"

    @property
    def chunks(self) -> int:
        """Number of chunks; the last may be smaller."""
        return -(-self.shape[0] // self.chunk)

    @property
    def nbytes(self) -> int:
        """Size of the numbers on disk."""
        return int(np.prod(self.shape)) * self.dtype.itemsize

    def rows(self, number: int) -> slice:
        """The images of a chunk."""
        return slice(number * self.chunk, min((number + 1) * self.chunk, self.shape[0]))

    def missing(self) -> list[int]:
        """Chunks that were never written, or whose bytes have changed since."""
        values = self._values()
        if values is None:
            return list(range(self.chunks))
        digests = self._digests()
        return [n for n in range(self.chunks) if digests.get(n) != chunk_digest(values[self.rows(n)])]

    def write(self, number: int, features: np.ndarray, images: Sequence[str] = ()) -> None:
        """Store a chunk; it is on disk before the log records it.

        Args:
            number: which chunk.
            features: of its images.
            images: a digest of each image's pixels, so that other tables can find its row.
        """
        rows = self.rows(number)
        expected = (rows.stop - rows.start, *self.shape[1:])
        if features.shape != expected or features.dtype != self.dtype:
            raise ValueError(f"chunk {number} is {features.dtype} {features.shape}; expected {self.dtype} {expected}")
        try:
            offset = self.prepare()
            with self.file.open("r+b") as file:
                file.seek(offset + rows.start * int(np.prod(self.shape[1:])) * self.dtype.itemsize)
                file.write(np.ascontiguousarray(features).data)
                file.flush()
                os.fsync(file.fileno())
            with self.log.open("a", encoding="utf-8") as log:
                # A newline first: the last line may have been cut short.
                line = {
                    "chunk": number,
                    "sha256": chunk_digest(features),
                    **({"images": list(images)} if images else {}),
                }
                log.write("\n" + json.dumps(line))
                log.flush()
                os.fsync(log.fileno())
        except OSError as error:
            raise self._unwritable(error) from error

    def open(self) -> Tensor:
        """All rows (N, V, D), mapped into memory. Writing to the tensor does not reach the file."""
        values = self._values(mode="c")  # copy on write: torch has no read-only tensors
        if values is None:
            raise DataError(f"{self.file} has vanished or changed while it was in use; start again")
        return torch.from_numpy(values)

    def _values(self, mode: str = "r") -> np.memmap | None:
        try:
            values = np.load(self.file, mmap_mode=mode, allow_pickle=False)  # type: ignore[arg-type]
        except Exception:  # gone, or damaged in whatever way: NumPy's reader has many errors
            return None
        return values if values.shape == self.shape and values.dtype == self.dtype else None

    def _digests(self) -> dict[int, str]:
        return {number: record.sha256 for number, record in self.recorded().items()}

    def recorded(self) -> dict[int, ChunkRecord]:
        """What the log says of each chunk; the latest line counts."""
        found: dict[int, ChunkRecord] = {}
        try:
            lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            return found
        for line in lines:
            try:
                row = json.loads(line)
                found[int(row["chunk"])] = ChunkRecord(str(row["sha256"]), tuple(map(str, row.get("images", ()))))
            except (ValueError, KeyError, TypeError, AttributeError):
                continue  # cut short, or damaged: its chunk is made again
        return found

    def digest(self) -> str:
        """Hash of all chunks' digests: of the numbers themselves, where the table is complete."""
        digests = self._digests()
        return hashlib.sha256(json.dumps([digests.get(n) for n in range(self.chunks)]).encode()).hexdigest()

    def prepare(self) -> int:
        """Create the file at its full size if it does not exist; return where its numbers begin."""
        values = self._values()
        if values is None:
            aside = self.file.with_name(f".{self.file.name}.{os.getpid()}")
            try:
                self.folder.mkdir(parents=True, exist_ok=True)
                self._describe()
                values = np.lib.format.open_memmap(aside, mode="w+", dtype=self.dtype, shape=self.shape)
                aside.replace(self.file)
            except OSError as error:
                with suppress(OSError):  # where nothing can be written, nothing can be removed
                    aside.unlink()
                raise self._unwritable(error) from error
        return int(values.offset)

    def _describe(self) -> None:
        if self.facts is not None:
            about = {"encoder": self.facts.encoder, "views": self.facts.views, "shape": self.shape}
            aside = self.folder / f".{ABOUT}.{os.getpid()}"
            aside.write_text(json.dumps({**about, "dtype": self.dtype.name}), encoding="utf-8")
            aside.replace(self.folder / ABOUT)

    def _unwritable(self, error: OSError) -> DataError:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        todo = "make room there" if full else "allow writing there (nothing is kept anywhere else)"
        return DataError(
            f"features cannot be kept in {self.folder}: {error.strerror or error}. They take "
            f"{math.ceil(self.nbytes / 2**20):,} MiB; {todo}, or choose another folder: run.cache=FOLDER"
        )


def chunk_digest(values: np.ndarray) -> str:
    """Hash of the bytes of a chunk."""
    return hashlib.sha256(np.ascontiguousarray(values).reshape(-1).view(np.uint8).data).hexdigest()
