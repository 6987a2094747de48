"""What was found when files were decoded, kept so that unchanged files need not be opened again.

A record belongs to a list of files, known by path, size, time of change and, where the system has it, the time when
anything about the file changed, which no program can set back. Whatever changes, there is no record, and all files are
decoded as if for the first time.
"""

import hashlib
import json
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
import PIL

from protocon.base.atomic import write_bytes
from protocon.data.files.file_report import ImageFacts
from protocon.data.files.kinds import heic_is_readable
from protocon.data.files.stores import FileEntry, FileStore, FolderStore
from protocon.data.files.strings import StringTable
from protocon.errors import ProtoConError

_VERSION = 2
"""Raise it whenever decoding gives other pixels, facts or errors than before."""
_KEPT = tuple(field.name for field in fields(ImageFacts))[1:]
"""What a record says of an image: all but its name."""
_SETTLED_NS = 50_000_000
"""Files that changed this recently could change again within a tick of the system's clock: no record is kept."""


@dataclass(frozen=True)
class DecodedRecord:
    """What decoding found in a list of files."""

    found: tuple[ImageFacts | str, ...]
    """Of each file what the image says of itself, or why it cannot be decoded, without the file's name."""
    pixels: str
    """Hash of the decoded images that can be used, as `content_of` makes it."""


@dataclass(frozen=True)
class RecordPlace:
    """Where the record of just these files, unchanged, is kept."""

    file: Path
    settled: bool
    """Whether the last change of any of them is so long ago that another would show."""

    def load(self, files: list[FileEntry]) -> DecodedRecord | None:
        """The record kept there; None if there is none or it is damaged."""
        try:
            content = json.loads(self.file.read_bytes())
            rows, pixels = content["rows"], str(content["pixels"])
            if content["sha256"] != _digest(rows, pixels) or len(rows) != len(files):
                return None
            found = [
                row if isinstance(row, str) else ImageFacts(entry.path, *row)
                for entry, row in zip(files, rows, strict=True)
            ]
        except (OSError, ValueError, LookupError, TypeError):
            return None
        return DecodedRecord(tuple(found), pixels)

    def save(self, record: DecodedRecord) -> None:
        """Keep a record. A cache that cannot be written to costs time later, and nothing else."""
        if not self.settled:
            return
        rows = [one if isinstance(one, str) else [getattr(one, name) for name in _KEPT] for one in record.found]
        content = {"sha256": _digest(rows, record.pixels), "pixels": record.pixels, "rows": rows}
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            write_bytes(self.file, json.dumps(content).encode())
        except (OSError, ProtoConError):
            return


def record_place(
    folder: Path, store: FileStore, files: list[FileEntry], *, size: int, grey: bool, squash: bool
) -> RecordPlace:
    """Where the record of these files, decoded at this size, is kept or would be.

    Args:
        folder: of all records.
        store: holds the files.
        files: in order.
        size: side of the decoded images.
        grey: one channel instead of three.
        squash: the whole of each picture instead of its centre.
    """
    digest = hashlib.sha256(f"{_decoder()} {size} {grey} {squash} {_where(store)}".encode("utf-8", "surrogateescape"))
    for part in StringTable(entry.path for entry in files).buffers():
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    changes = _changes(store, files)
    stamps = [(entry.size, entry.stamp, change) for entry, change in zip(files, changes, strict=True)]
    digest.update(np.array(stamps, dtype=np.int64).tobytes())
    settled = time.time_ns() - max(changes, default=0) >= _SETTLED_NS
    return RecordPlace(folder / f"files-{digest.hexdigest()[:32]}.json", settled)


def _decoder() -> str:
    """What decides which files can be decoded, and to which pixels."""
    return f"{_VERSION} {PIL.__version__} {heic_is_readable()}"


def _where(store: FileStore) -> str:
    return os.path.realpath(store.where)


def _changes(store: FileStore, files: list[FileEntry]) -> list[int]:
    """When anything about each file last changed; of an archive's members 0, since their checksums are known."""
    if not isinstance(store, FolderStore):
        return [0] * len(files)
    root = str(store.root)
    try:
        return [os.stat(f"{root}/{entry.path}").st_ctime_ns for entry in files]  # noqa: PTH116  # many files
    except OSError:
        return [time.time_ns()] * len(files)  # one has just vanished: nothing is known of these files


def _digest(rows: Sequence[object], pixels: str) -> str:
    return hashlib.sha256(json.dumps([rows, pixels]).encode()).hexdigest()
