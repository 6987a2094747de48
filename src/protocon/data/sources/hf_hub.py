"""Data sets of the Hugging Face hub, or saved by its package `datasets`, which is needed for it."""

import importlib
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from protocon.data.files.decode_all import Members
from protocon.data.files.file_report import SkippedFile
from protocon.data.files.places import some
from protocon.data.files.stores import FileEntry
from protocon.data.imageset import UNKNOWN, DataBundle
from protocon.data.labels.label_file import sorted_names
from protocon.data.source_options import FILE_OPTIONS, SourceOptions
from protocon.data.sources.hf_folder import TEST_NAMES
from protocon.data.sources.listing import FileListing, make_bundle
from protocon.errors import DataError

_LABEL_COLUMNS = ("label", "labels", "fine_label", "class", "target", "category")
_SAVED = ("dataset_dict.json", "dataset_info.json")
_CHUNK = 1000


def huggingface(options: SourceOptions) -> DataBundle:
    """A data set by its name on the hub (`owner/name`, or `owner/name:configuration`), or by a local folder or file.

    Splits: train and unlabelled (or unlabeled, unsupervised) to learn from; test, else validation, to test on. The
    images are those of the first image column, the labels those of a column of classes. −1 and null: unknown.
    """
    options.accept_only("hf", *FILE_OPTIONS, "test_fraction", "test_seed")
    if options.root is None:
        raise DataError("Dataset 'hf' needs a name: --data hf:NAME, such as hf:ylecun/mnist.")
    splits = _load(options.root)
    learn, test_name = _roles(splits, options.root)
    image, label = _columns(splits[learn[0]], options.root)
    store = _HubStore(str(options.root), {name: splits[name] for name in (*learn, *filter(None, [test_name]))}, image)
    texts = {name: _labels(splits[name], label, unknown=name in learn[1:]) for name in store.splits}
    class_names = _class_names(splits[learn[0]], label, texts)
    numbers = {name: number for number, name in enumerate(class_names)} | {"": UNKNOWN}

    def members(names: tuple[str, ...]) -> Members:
        files = [entry for name in names for entry in store.entries(name)]
        return Members(files, np.array([numbers[text] for name in names for text in texts[name]], dtype=np.int64))

    skipped: list[SkippedFile] = []
    test = members((test_name,)) if test_name else None
    if test is not None and (test.labels < 0).any():  # test labels are often withheld
        unknown = np.flatnonzero(test.labels < 0)
        skipped += [SkippedFile(test.files[int(i)].path, "test image without a label") for i in unknown]
        test = test.take(np.flatnonzero(test.labels >= 0))
    unused = sorted(set(splits) - set(store.splits))
    warnings = [f"splits that are not used: {', '.join(unused)}"] if unused else []
    test = test if test is not None and test.files else None
    listing = FileListing("hf", store, class_names, members(learn), test, skipped, warnings)
    return make_bundle(listing, options, own=True)


def _load(root: Path) -> dict[str, Any]:
    """Splits by name."""
    try:
        datasets: Any = importlib.import_module("datasets")
    except ImportError as error:
        raise DataError(
            "Data sets of Hugging Face need its package: pip install datasets. Images that are already in a folder "
            "need nothing more."
        ) from error
    try:
        found = _read(datasets, root)
    except Exception as error:  # every builder, file system and connection has errors of its own
        said = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
        where = "read" if root.exists() else "fetched from the Hugging Face hub"
        raise DataError(
            f"The data set {root} cannot be {where} ({said}). Without a connection, give the folder of a local copy."
        ) from error
    return dict(found) if isinstance(found, dict) else {"train": found}


def _read(datasets: Any, root: Path) -> Any:
    if root.is_dir() and any((root / name).is_file() for name in _SAVED):
        return datasets.load_from_disk(str(root))
    if root.is_file():
        return datasets.load_dataset(root.suffix.lstrip("."), data_files=str(root))
    if root.is_dir():
        return datasets.load_dataset(str(root))
    name, _, configuration = root.as_posix().partition(":")
    return datasets.load_dataset(name, configuration or None)


def _roles(splits: dict[str, Any], root: Path) -> tuple[tuple[str, ...], str | None]:
    """Splits to learn from, the labelled one first, and the one to test on."""
    train = "train" if "train" in splits else next(iter(splits)) if len(splits) == 1 else None
    if train is None:
        raise DataError(f"{root} has the splits {', '.join(splits)}; expected one called train.")
    more = tuple(n for n in splits if n in ("unlabelled", "unlabeled", "unsupervised") and n != train)
    test = next((name for name in TEST_NAMES if name in splits and name != train), None)
    return (train, *more), test


def _columns(split: Any, root: Path) -> tuple[str, str | None]:
    """Names of the image column and of the label column."""
    kinds = {name: type(feature).__name__ for name, feature in split.features.items()}
    images = [n for n, f in split.features.items() if kinds[n] == "Image" or (isinstance(f, dict) and "bytes" in f)]
    if not images:
        raise DataError(f"{root} has no column of images; its columns are {', '.join(kinds)}.")
    classes = [name for name, kind in kinds.items() if kind == "ClassLabel"]
    named = [name for name in _LABEL_COLUMNS if name in (classes or kinds)]
    label = named[0] if named else classes[0] if classes else None
    return images[0], label


def _labels(split: Any, column: str | None, *, unknown: bool) -> list[str]:
    """Labels as text; empty where there is none."""
    if unknown or column is None or column not in split.features:
        return [""] * len(split)
    feature = split.features[column]
    names = getattr(feature, "names", None)
    texts = []
    for value in split[column]:
        if value is None or value == UNKNOWN or str(value).strip() in ("", "-1"):
            texts.append("")
        else:
            texts.append(names[value] if names else str(value).strip())
    return texts


def _class_names(split: Any, column: str | None, texts: dict[str, list[str]]) -> tuple[str, ...]:
    names = tuple(getattr(split.features.get(column), "names", None) or ())
    names = names or sorted_names({text for column_texts in texts.values() for text in column_texts} - {""})
    if len(names) < 2:
        raise DataError(f"The data set has {len(names)} classes ({some(list(names)) or 'no labels'}); two are needed.")
    return names


class _HubStore:
    """Rows of splits as files: `train/000012`, or `train/cat.jpg` where all rows have a name."""

    def __init__(self, where: str, splits: dict[str, Any], column: str) -> None:
        datasets: Any = importlib.import_module("datasets")
        self.where = where
        self.splits = {name: s.cast_column(column, datasets.Image(decode=False)) for name, s in splits.items()}
        self._column = column
        self._rows: dict[str, tuple[str, int]] = {}
        self._entries = {name: list(self._list(name)) for name in self.splits}

    def _list(self, split: str) -> Iterator[FileEntry]:
        compute: Any = importlib.import_module("pyarrow.compute")
        rows = self.splits[split].select_columns([self._column]).with_format("arrow")
        sizes: list[int] = []
        names: list[str] = []
        for start in range(0, len(rows), _CHUNK):
            images = rows[start : start + _CHUNK][self._column]
            lengths = compute.binary_length(compute.struct_field(images, "bytes"))  # of mapped memory: nothing is read
            sizes += [size or 0 for size in lengths.to_pylist()]
            names += [Path(path or "").name for path in compute.struct_field(images, "path").to_pylist()]
        if len(set(names)) < len(names) or "" in names:
            names = [f"{number:06}" for number in range(len(sizes))]
        for number, (name, size) in enumerate(zip(names, sizes, strict=True)):
            self._rows[f"{split}/{name}"] = (split, number)
            yield FileEntry(f"{split}/{name}", max(size, 1))

    def entries(self, split: str) -> list[FileEntry]:
        """The rows of a split."""
        return self._entries[split]

    def files(self, under: str = "") -> list[FileEntry]:
        """All rows, or those of the split `under`."""
        return [entry for name, rows in self._entries.items() if under in ("", name) for entry in rows]

    def folders(self, under: str = "") -> list[str]:
        """The splits."""
        return [] if under else sorted(self.splits)

    def open(self, path: str) -> BinaryIO:
        """The bytes of one image."""
        split, number = self._rows[path]
        image = self.splits[split][number][self._column]
        if image is None or (image["bytes"] is None and image["path"] is None):
            raise DataError(f"{self.full_name(path)} has no image.")
        if image["bytes"] is not None:
            return io.BytesIO(image["bytes"])
        try:
            return Path(image["path"]).open("rb")
        except OSError as error:
            raise DataError(f"{self.full_name(path)} cannot be opened: {error.strerror}.") from error

    def full_name(self, path: str) -> str:
        """The row as a message names it."""
        return f"{self.where}:{path}"
