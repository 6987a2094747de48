"""Images sorted into class folders: `imagefolder`, and ImageNet, which is one."""

import re

import numpy as np

from protocon.data.files.decode_all import Members
from protocon.data.files.file_report import SkippedFile
from protocon.data.files.names import shown
from protocon.data.files.places import need_root, open_store, some, wrong_place
from protocon.data.files.stores import FileEntry, FileStore, FolderStore, is_hidden
from protocon.data.imageset import UNKNOWN, DataBundle
from protocon.data.labels.similar_names import similar_classes
from protocon.data.source_options import FILE_OPTIONS, SourceOptions
from protocon.data.sources.listing import FileListing, make_bundle, sort_out
from protocon.errors import DataError

_TEST_NAMES = ("test", "val", "valid", "validation")
_UNLABELLED_NAMES = ("unlabelled", "unlabeled")
"""Also with capitals, or with underscores and the like before or after: `_unlabeled`."""
_EXPECTED = (
    "one folder of images for each class, either directly or in train/ with test/ (or val/); "
    "images of unknown class in unlabelled/"
)
_WNID = re.compile(r"n\d{8}")


def imagefolder(options: SourceOptions) -> DataBundle:
    """root/<class>/*, or root/train/<class>/* with root/test/<class>/* (or val/); also as a zip.

    Folders within a class folder belong to that class. Images in unlabelled/ (or unlabeled/), at the top
    or in train/, are training images of unknown class. A class folder without images is left out, with a warning.
    """
    options.accept_only("imagefolder", *FILE_OPTIONS, "test_fraction", "test_seed")
    root = need_root(options, "imagefolder", _EXPECTED)
    listing = list_class_folders("imagefolder", open_store(root, "imagefolder", _EXPECTED), own=True)
    counts = np.bincount(listing.train.labels[listing.train.labels >= 0], minlength=len(listing.class_names))
    listing.warnings.extend(similar_classes(listing.class_names, counts.tolist()))
    return make_bundle(listing, options, own=True)


def is_unlabelled_folder(name: str) -> bool:
    """Whether a folder of this name holds images of unknown class."""
    return name.strip("_-. ").lower() in _UNLABELLED_NAMES


def imagenet(options: SourceOptions) -> DataBundle:
    """train/<wnid>/*.JPEG and val/<wnid>/*.JPEG; classes are the sorted wnids, images 224×224."""
    expected = "train/<wnid>/*.JPEG and val/<wnid>/*.JPEG, with 1,000 folders such as n01440764 in each"
    get = "ImageNet is at https://image-net.org; its validation images must be moved into wnid folders."
    options.accept_only("imagenet", *FILE_OPTIONS)
    root = need_root(options, "imagenet", expected)
    if not ((root / "train").is_dir() and (root / "val").is_dir()):
        raise wrong_place(root, "imagenet", expected, get)
    store = FolderStore(root)
    for part in ("train", "val"):
        folders = [name for name in store.folders(part) if not is_hidden(name)]
        strange = [name for name in folders if not _WNID.fullmatch(name)]
        if strange or not folders:
            raise wrong_place(root / part, "imagenet", expected, get)
    # Only these two folders are searched: root often holds annotations and archives as well.
    entries = store.files("train") + store.files("val")
    return make_bundle(_with_test("imagenet", store, entries, "val"), options, default_size=224)


def list_class_folders(name: str, store: FileStore, *, own: bool = False) -> FileListing:
    """Find the layout and sort every file into training, test or skipped.

    `own`: a user's own folders. A class without images is then left out with a warning; in a benchmark it is an error.

    Args:
        name: of the data source, for messages.
        store: the files.
        own: whether these are a user's own folders.
    """
    entries = store.files()
    # `train` may also be a class (trains). It is the training set if it holds folders of its own.
    if "train" in store.folders() and store.folders("train"):
        tests = [folder for folder in _TEST_NAMES if folder in store.folders()]
        return _with_test(name, store, entries, tests[0] if tests else None, own=own)
    for folder in _TEST_NAMES:
        if folder in store.folders() and store.folders(folder):
            raise DataError(
                f"{store.where} has {folder}/ with folders in it but no train/. Put the training classes into train/."
            )
    images, skipped = sort_out(entries)
    warnings: list[str] = []
    train, class_names = _training(store, images, "", skipped, warnings if own else None)
    return FileListing(name, store, class_names, train, None, skipped, warnings)


def _with_test(
    name: str, store: FileStore, entries: list[FileEntry], test: str | None, *, own: bool = False
) -> FileListing:
    images, skipped = sort_out(entries)
    warnings: list[str] = []
    aloud = warnings if own else None
    inside = tuple(f"{part}/" for part in ("train", *_UNLABELLED_NAMES, *([test] if test else [])))
    also = tuple(f"{folder}/" for folder in store.folders() if is_unlabelled_folder(folder))
    for entry in images:
        if not entry.path.startswith(inside + also):
            skipped.append(SkippedFile(entry.path, f"outside {', '.join(inside)}"))
    train, class_names = _training(store, images, "train/", skipped, aloud)
    members = _test(store, images, test, class_names, skipped, aloud) if test else None
    return FileListing(name, store, class_names, train, members, skipped, warnings)


def _training(
    store: FileStore,
    images: list[FileEntry],
    prefix: str,
    skipped: list[SkippedFile],
    warnings: list[str] | None,
) -> tuple[Members, tuple[str, ...]]:
    """The classes of the folders in `prefix`, their images, and the unlabelled ones.

    A class without images is left out if there are `warnings` to say so, else an error.
    """
    class_names = _class_names(store, prefix)
    if warnings is not None:
        full = {entry.path.removeprefix(prefix).partition("/")[0] for entry in images if entry.path.startswith(prefix)}
        warnings += [
            f"class folder {shown(prefix + n)}/ has no image; it is left out" for n in class_names if n not in full
        ]
        class_names = tuple(name for name in class_names if name in full)
        if len(class_names) < 2:
            raise DataError(f"{store.where}: {len(class_names)} class folder with images; at least two are needed.")
    numbers = {class_name: number for number, class_name in enumerate(class_names)}
    unlabelled = tuple(
        f"{start}{folder}/" for start in {"", prefix} for folder in store.folders(start) if is_unlabelled_folder(folder)
    )
    files: list[FileEntry] = []
    labels: list[int] = []
    for entry in images:
        folder, slash, _ = entry.path.removeprefix(prefix).partition("/")
        if entry.path.startswith(unlabelled):
            label = UNKNOWN
        elif entry.path.startswith(prefix) and slash:
            label = numbers[folder]
        elif entry.path.startswith(prefix):
            skipped.append(SkippedFile(entry.path, "outside a class folder"))
            continue
        else:
            continue
        files.append(entry)
        labels.append(label)
    found = np.bincount([label for label in labels if label >= 0], minlength=len(class_names))
    empty = [class_names[int(i)] for i in np.flatnonzero(found == 0)]
    if empty:
        raise DataError(
            f"{store.where}: no image in the class folder {some([prefix + e for e in empty])}. "
            "Add images to it or remove it."
        )
    return Members(files, np.array(labels, dtype=np.int64)), class_names


def _class_names(store: FileStore, prefix: str) -> tuple[str, ...]:
    folders = store.folders(prefix)
    names = tuple(n for n in folders if not is_hidden(n) and not is_unlabelled_folder(n))
    if len(names) < 2:
        raise DataError(
            f"{store.where}: expected {_EXPECTED}. Found {len(names)} class folder"
            f"{'' if len(names) == 1 else 's'} in {prefix or 'it'}{': ' + names[0] if names else ''}. "
            "For images beside a labels.csv use the dataset 'folder'."
        )
    return names


def _test(
    store: FileStore,
    images: list[FileEntry],
    folder: str,
    class_names: tuple[str, ...],
    skipped: list[SkippedFile],
    warnings: list[str] | None,
) -> Members | None:
    """The test images, or None where none of them lies in a class folder."""
    numbers = {class_name: number for number, class_name in enumerate(class_names)}
    unknown = [n for n in store.folders(folder) if n not in numbers and not is_hidden(n)]
    if unknown and warnings is not None:
        warnings.append(f"{folder}/ has classes that train/ has not, which are not tested: {shown(some(unknown))}")
    elif unknown:
        raise DataError(
            f"{store.where}: {folder}/ has classes that train/ has not: {some(unknown)}. "
            "Training and test classes must have the same names."
        )
    files: list[FileEntry] = []
    labels: list[int] = []
    for entry in images:
        if not entry.path.startswith(f"{folder}/"):
            continue
        class_name, slash, _ = entry.path.removeprefix(f"{folder}/").partition("/")
        if not slash:
            skipped.append(SkippedFile(entry.path, "test image outside a class folder"))
            continue
        if class_name not in numbers:
            skipped.append(SkippedFile(entry.path, "test image of a class that train/ has not"))
            continue
        files.append(entry)
        labels.append(numbers[class_name])
    return Members(files, np.array(labels, dtype=np.int64)) if files else None
