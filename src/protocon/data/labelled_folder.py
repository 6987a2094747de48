"""A folder of one's own images with a few labels in a CSV file."""

import difflib
import unicodedata
from pathlib import Path, PurePosixPath

import numpy as np

from protocon.data.fileset import FileListing, Members, make_bundle, sort_out
from protocon.data.imageset import UNKNOWN, DataBundle
from protocon.data.labelfile import LabelRow, read_label_rows, sorted_names
from protocon.data.options import FILE_OPTIONS, SourceOptions
from protocon.data.places import need_root, some, wrong_place
from protocon.data.report import SkippedFile
from protocon.data.stores import FileEntry, FolderStore
from protocon.errors import DataError

_UNKNOWN_LABELS = {"", "-1"}
_EXPECTED = "image files, in any folders, and labels.csv with rows `file,label` for the labelled ones"


def folder(options: SourceOptions) -> DataBundle:
    """Images anywhere below root; labels.csv (or the option `labels`) names the class of some of them.

    Files are named relative to root. Every image that has no row, or an empty label or −1, is unlabelled.
    """
    options.accept_only("folder", *FILE_OPTIONS, "labels", "test_fraction", "test_seed")
    root = need_root(options, "folder", _EXPECTED)
    if not root.is_dir():
        raise wrong_place(root, "folder", _EXPECTED)
    path = options.labels or root / "labels.csv"
    if not path.is_file():
        raise DataError(f"Labels file {path} does not exist. Expected in {root}: {_EXPECTED}.")
    store = FolderStore(root)
    images, skipped = sort_out(store.files())
    inside = path.resolve().is_relative_to(root.resolve())
    own = path.resolve().relative_to(root.resolve()).as_posix() if inside else None
    skipped = [SkippedFile(s.path, "the labels file") if s.path == own else s for s in skipped]
    if not images:
        raise wrong_place(root, "folder", _EXPECTED)
    labels, class_names = _match(path, read_label_rows(path), images, skipped, root)
    return make_bundle(FileListing("folder", store, class_names, Members(images, labels), None, skipped), options)


def _match(
    path: Path, rows: list[LabelRow], images: list[FileEntry], skipped: list[SkippedFile], root: Path
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Labels of the images, int64 (N,), and the class names."""
    # Macs store é as two characters; the table may have it as one.
    places = {unicodedata.normalize("NFC", entry.path): i for i, entry in enumerate(images)}
    given: dict[int, LabelRow] = {}
    missing: list[LabelRow] = []
    for row in rows:
        place = places.get(_relative(row.file, root))
        if place is None:
            missing.append(row)
        elif place not in given:
            given[place] = row
        elif given[place].label != row.label:
            first = given[place]
            raise DataError(
                f"{path}: {row.file} has two labels: {first.label!r} (line {first.line}) and "
                f"{row.label!r} (line {row.line}). Keep one."
            )
    if missing:
        raise _missing_error(path, missing, places, skipped, root)
    class_names = sorted_names({row.label for row in given.values()} - _UNKNOWN_LABELS)
    if len(class_names) < 2:
        raise DataError(
            f"{path} names {len(class_names)} class{'es' if not class_names else ''} "
            f"({some(list(class_names)) or 'no label is filled in'}); expected at least two."
        )
    numbers = {class_name: number for number, class_name in enumerate(class_names)}
    labels = np.full(len(images), UNKNOWN, dtype=np.int64)
    for place, row in given.items():
        labels[place] = numbers.get(row.label, UNKNOWN)
    return labels, class_names


def _relative(file: str, root: Path) -> str:
    """A row's file as the listing names it."""
    file = unicodedata.normalize("NFC", file)
    if Path(file).is_absolute() and Path(file).is_relative_to(root):
        return Path(file).relative_to(root).as_posix()
    return PurePosixPath(file.replace("\\", "/")).as_posix()


def _missing_error(
    path: Path, missing: list[LabelRow], places: dict[str, int], skipped: list[SkippedFile], root: Path
) -> DataError:
    """The error for rows whose file is not among the images, with the likeliest cause of each."""
    reasons = {skip.path: skip.reason for skip in skipped}
    by_name: dict[str, str] = {}
    for place in places:
        by_name.setdefault(PurePosixPath(place).name.lower(), place)
        by_name.setdefault(PurePosixPath(place).stem.lower(), place)
    lines = []
    for row in missing[:5]:
        name = _relative(row.file, root)
        text = f"line {row.line}: {row.file}"
        guess = by_name.get(PurePosixPath(name).name.lower())
        close = [guess] if guess else difflib.get_close_matches(name, list(places)[:20_000], n=1)
        if name in reasons:
            text += f" (skipped: {reasons[name]})"
        elif close:
            text += f" (did you mean {close[0]}?)"
        lines.append(text)
    more = f"\n  and {len(missing) - 5:,} more" if len(missing) > 5 else ""
    return DataError(
        f"{path} names files that are not among the images in {root} ({len(missing):,} in all):\n  "
        + "\n  ".join(lines)
        + more
        + "\nNames are relative to that folder."
    )
