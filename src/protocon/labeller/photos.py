"""The images of a folder, each with a number that stays its own while the program runs.

Numbers are all that a browser knows of files. A file that is changed counts as gone, and as a new one; a link that
leads out of the folder is not used.
"""

import hashlib
import os
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from protocon.data.files.digests import file_digest
from protocon.data.files.stores import FileEntry, FolderStore
from protocon.data.labels.answers import ImageRef
from protocon.data.sources.listing import sort_out
from protocon.errors import DataError

_NAMED_PROBLEMS = 20


@dataclass(frozen=True)
class Change:
    """What a look at the folder found."""

    added: tuple[int, ...] = ()
    gone: tuple[int, ...] = ()


class Photos:
    """Images below a folder.

    The order is a shuffle that depends on the names alone, so that the first hundred are a fair sample of the folder.

    Args:
        root: the folder.
    """

    def __init__(self, root: Path) -> None:
        if not root.is_dir():
            raise DataError(f"{root} is not a folder. Expected a folder of images; unpack archives first.")
        self.root = root
        self.files: list[FileEntry] = []
        self.gone: set[int] = set()
        self.problems: list[str] = []
        self._store = FolderStore(root)
        self._real = Path(os.path.realpath(root))
        self._places: dict[str, int] = {}
        self._digests: dict[int, str] = {}
        self._lock = threading.Lock()
        self.refresh()
        if not self.files:
            raise DataError(
                f"{root} holds no images that can be used. Expected image files (JPEG, PNG, TIFF, WebP, …), in any "
                "folders below it."
            )

    def __len__(self) -> int:
        return len(self.files)

    def refresh(self) -> Change:
        """Look at the folder again: which numbers are new, and whose files are gone or changed."""
        images, _ = sort_out(self._store.files())
        found, problems = self._usable(images)
        with self._lock:
            self.problems = problems
            present = {entry.path: entry for entry in found}
            gone = [n for path, n in self._places.items() if present.get(path) != self.files[n]]
            for number in gone:
                del self._places[self.files[number].path]
            self.gone.update(gone)
            fresh = sorted((e for e in found if e.path not in self._places), key=lambda e: _shuffled(e.path))
            first = len(self.files)
            self.files.extend(fresh)
            self._places.update({entry.path: first + n for n, entry in enumerate(fresh)})
            return Change(tuple(range(first, len(self.files))), tuple(gone))

    def _usable(self, images: list[FileEntry]) -> tuple[list[FileEntry], list[str]]:
        inside: dict[str, bool] = {}
        found: list[FileEntry] = []
        problems: list[str] = []
        for entry in images:
            parent = os.path.dirname(entry.path)  # noqa: PTH120  # a hundred thousand times
            if parent not in inside:
                inside[parent] = self._is_inside(self._real / parent)
            full = self._real / entry.path
            if not inside[parent] or (full.is_symlink() and not self._is_inside(full)):
                problems.append(f"{entry.path} leads out of the folder and is not used")
            elif not _is_text(entry.path):
                problems.append(f"{entry.path!a} has a name that is not valid text; rename it to use it")
            else:
                found.append(entry)
        if len(problems) > _NAMED_PROBLEMS:
            problems = [*problems[:_NAMED_PROBLEMS], f"and {len(problems) - _NAMED_PROBLEMS:,} more files"]
        return found, problems

    def _is_inside(self, path: Path) -> bool:
        return Path(os.path.realpath(path)).is_relative_to(self._real)

    def open(self, number: int) -> BinaryIO:
        """Open an image for reading, if it is still the same file and still inside the folder."""
        entry = self._entry(number)
        full = self._real / entry.path
        if not self._is_inside(full):
            raise DataError(f"{entry.path} leads out of the folder and is not used.")
        if self._store.entry(entry.path) != entry:
            raise DataError(f"{entry.path} has changed or vanished since the folder was looked at.")
        return self._store.open(entry.path)

    def ref(self, number: int) -> ImageRef:
        """The image with the digest of its bytes; of a file that has vanished, if it was known before."""
        entry = self._entry(number)
        if number not in self._digests:
            self.open(number).close()  # refuses what has changed or leads out of the folder
            try:
                digest = file_digest(self._real / entry.path)
            except OSError as error:
                raise DataError(f"{entry.path} cannot be read: {error.strerror or error}.") from error
            self.open(number).close()  # it may have changed while it was read
            self._digests[number] = digest
        return ImageRef(entry.path, self._digests[number], entry.size)

    def stamp(self, number: int) -> str:
        """Says which file, in which version, a number means: a page that is older than a restart shows it."""
        entry = self._entry(number)
        return hashlib.sha256(repr(tuple(entry)).encode("utf-8", "surrogateescape")).hexdigest()[:16]

    def find(self, image: ImageRef) -> int | None:
        """The number of the image that an answer names: same path and bytes, else the same bytes elsewhere."""
        number = self._places.get(image.path)
        if number is not None and self._matches(number, image):
            return number
        same_size = (n for n in self._places.values() if self.files[n].size == image.size)
        return next((n for n in same_size if self._matches(n, image)), None)

    def _matches(self, number: int, image: ImageRef) -> bool:
        if self.files[number].size != image.size:
            return False
        try:
            return self.ref(number).sha256 == image.sha256
        except DataError:
            return False

    def _entry(self, number: int) -> FileEntry:
        if not 0 <= number < len(self.files):
            raise DataError(f"there is no image number {number}; expected 0 to {len(self.files) - 1}.")
        return self.files[number]


def _shuffled(path: str) -> bytes:
    return hashlib.sha256(path.encode("utf-8", "surrogateescape")).digest()


def _is_text(path: str) -> bool:
    try:
        path.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return path == path.strip() and "\n" not in path and "\r" not in path
