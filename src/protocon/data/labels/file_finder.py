"""Which image a name in a labels file means: exactly, or as people write names where that is clear."""

from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from protocon.data.files.names import normal, shown

_SAME_SUFFIX = {".jpeg": ".jpg", ".jpe": ".jpg", ".jfif": ".jpg", ".tiff": ".tif"}
EXACTLY = ""
_CAPITALS = "in other capitals, or with the extension spelled in another way"
_NO_EXTENSION = "without the extension"
_OTHER_FOLDER = "with other folders in front"
_NO_FOLDER = "without the folder"


class Found(NamedTuple):
    """What a name means."""

    place: int | None
    """Position of the image; None if there is none, or if it could be several."""
    how: str = EXACTLY
    """In which way the name differs from the file's; empty where it does not."""
    several: tuple[str, ...] = ()
    """Files that it could mean, where that is not clear."""


class FileFinder:
    """Finds images by name.

    Exact names come first. Otherwise a name may differ in capitals, lack the extension, have other folders in front
    (`photos/1.jpg`, `C:\\Users\\…\\1.jpg`), or lack the folder, as long as only one image fits.

    Args:
        files: names of the images, relative to their folder.
        root: that folder: a name may also be a full path.
        tolerant: whether anything but exact names counts; not so for ids that are no files.
    """

    def __init__(self, files: Sequence[str], *, root: Path | None = None, tolerant: bool = True) -> None:
        self.root = root
        self.tolerant = tolerant
        self.files = files
        self.places = {normal(name): place for place, name in enumerate(files)}
        self._loose: dict[str, list[str]] | None = None

    def relative(self, name: str) -> str:
        """A name as the listing has it, if it is an exact one."""
        if self.root is not None and Path(name).is_absolute():
            for base in (self.root, self.root.resolve()):
                if Path(name).is_relative_to(base):
                    return normal(Path(name).relative_to(base).as_posix())
        return normal(name)

    def find(self, name: str) -> Found:
        """The image that a name means."""
        path = self.relative(name)
        if path in self.places:
            return Found(self.places[path])
        if not self.tolerant or not path or ".." in path.split("/"):
            return Found(None)
        return self._find_loosely(path)

    def names_image(self, name: str) -> bool:
        """Whether a name means one of the images, perhaps not clearly which."""
        found = self.find(name)
        return found.place is not None or bool(found.several)

    def _find_loosely(self, path: str) -> Found:
        wanted = _parts(path)
        index = self._by_last_part()
        # A name without extension must not be taken for one that ends in a dot and a number, hence both ways.
        for last, how in ((wanted[-1], _CAPITALS), (f"{wanted[-1]}/", _NO_EXTENSION)):
            fitting: list[tuple[int, str, str]] = []
            for file in index.get(last, ()):
                have = _parts(file)[:-1]
                same = _common(wanted[:-1], have)
                if same == len(have) or same == len(wanted) - 1:
                    differs = _OTHER_FOLDER if same < len(wanted) - 1 else _NO_FOLDER if same < len(have) else how
                    fitting.append((same, file, differs))
            best = [row for row in fitting if row[0] == max(row[0] for row in fitting)]
            if len(best) == 1:
                return Found(self.places[best[0][1]], best[0][2])
            if best:
                return Found(None, several=tuple(file for _, file, _ in best))
        return Found(None)

    def _by_last_part(self) -> dict[str, list[str]]:
        """Images by their own name, and by their name without extension (with a slash, which no name has)."""
        if self._loose is None:
            self._loose = {}
            for file in self.places:
                last = _parts(file)[-1]
                self._loose.setdefault(last, []).append(file)
                self._loose.setdefault(f"{PurePosixPath(last).stem}/", []).append(file)
        return self._loose


def _parts(path: str) -> list[str]:
    """Folders and name, without regard to capitals and to the extension's spelling."""
    *folders, last = path.lower().strip("/").split("/")
    stem, dot, suffix = last.rpartition(".")
    if dot and stem:
        last = stem + _SAME_SUFFIX.get(dot + suffix, dot + suffix)
    return [*folders, last]


def _common(first: list[str], second: list[str]) -> int:
    """How many folders at the end are the same."""
    count = 0
    for a, b in zip(reversed(first), reversed(second), strict=False):
        if a != b:
            break
        count += 1
    return count


def said_of(source: str, taken: dict[str, list[tuple[str, str]]]) -> list[str]:
    """A line for each way in which names differ from the files that they are taken for, with an example."""
    return [
        f"{source}: {len(pairs):,} file name{'' if len(pairs) == 1 else 's'} written {how} "
        f"({shown(pairs[0][0])} is taken for {shown(pairs[0][1])})"
        for how, pairs in taken.items()
    ]
