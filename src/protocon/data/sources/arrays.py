"""Arrays of one's own: images or embeddings in .npz or .npy files."""

from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from protocon.data.files.digests import content_of
from protocon.data.files.file_report import FileReport
from protocon.data.files.places import need_root, some, wrong_place
from protocon.data.files.resize_arrays import resize_images
from protocon.data.imageset import UNKNOWN, ArrayImages, DataBundle, DataHints, FeatureArray
from protocon.data.labels.file_finder import FileFinder
from protocon.data.labels.holdout import hold_out
from protocon.data.labels.label_file import read_label_table, sorted_names
from protocon.data.labels.label_match import match_labels
from protocon.data.source_options import SourceOptions
from protocon.errors import ConfigError, DataError

X_NAMES = ("x", "X", "x_train", "X_train", "images", "features")
"""What the array of images or embeddings may be called, in the order in which it is looked for."""
_Y_NAMES = ("y", "y_train", "labels")
_X_TEST_NAMES = ("x_test", "X_test", "test_images", "test_features")
_Y_TEST_NAMES = ("y_test", "test_labels")
_ID_NAMES = ("ids", "id", "names", "files", "filenames")
_ID_TEST_NAMES = ("ids_test", "test_ids")
_TABLES = (".csv", ".tsv", ".txt")
_EXPECTED = (
    f"an .npz file with one of {', '.join(X_NAMES)} and optionally y, ids, x_test, y_test and class_names; "
    "or an .npy file, with the option labels for a second one or for a CSV of `id,label` rows"
)


def arrays(options: SourceOptions) -> DataBundle:
    """uint8 images (N, H, W), (N, H, W, C) or (N, C, H, W), or embeddings (N, D) of any number type.

    Labels are whole numbers or text; −1 and empty text mean unknown. Class names are the sorted labels,
    unless an array `class_names` says what the numbers 0, 1, … stand for. An array `ids` names the rows in
    labels.csv and wherever else one of them is meant; without it they have their numbers. The option `labels` may be a
    CSV of `id,label` rows.
    """
    options.accept_only("arrays", "root", "labels", "image_size", "test_fraction", "test_seed")
    root = need_root(options, "arrays", _EXPECTED)
    content = _read(root, options)
    x, x_test = content.x, content.x_test
    ids, report = content.names(root), None
    if options.labels is not None and options.labels.suffix.lower() in _TABLES:
        content, report = _with_table(content, ids, options.labels)
    labels, test_labels, class_names = _labels(content)
    if x_test is not None:
        if options.test_fraction is not None:
            raise ConfigError(f"test_fraction is given, but {root} has test arrays of its own. Remove it.")
        if (test_labels < 0).any() or len(test_labels) != len(x_test):
            raise DataError(f"{root}: {len(x_test)} test images need y_test with a known label for each.")
        test_ids = content.test_names(root)
        train = _image_set(x, labels, class_names, ids, np.arange(len(x)), options)
        test = _image_set(x_test, test_labels, class_names, test_ids, np.arange(len(x_test)), options)
        return DataBundle(train, test, _hints(x), report)
    if options.test_fraction is None:
        everything = _image_set(x, labels, class_names, ids, np.arange(len(x)), options)
        return DataBundle(everything, None, _hints(x), report)
    kept, held = hold_out(labels, options.test_fraction, seed=options.test_seed)
    return DataBundle(
        _image_set(x, labels, class_names, ids, kept, options),
        _image_set(x, labels, class_names, ids, held, options),
        _hints(x),
        report,
    )


def _with_table(content: "_Content", ids: list[str], path: Path) -> "tuple[_Content, FileReport]":
    """The content with labels from a CSV of `id,label` rows."""
    if content.y is not None:
        raise ConfigError(f"{path} is given, but the arrays have labels of their own. Remove one of them.")
    finder = FileFinder(ids, tolerant=False)
    table = read_label_table(path, names_image=finder.names_image)
    matched = match_labels(path.name, table, ids, finder=finder)
    text = np.array([*matched.class_names, ""])[matched.labels]  # −1 is the last: unknown
    return replace(content, y=text), FileReport(len(ids), (), tuple(matched.warnings), tuple(matched.notes))


def _hints(x: np.ndarray) -> DataHints:
    return DataHints(flip=x.ndim != 2)


def _image_set(
    x: np.ndarray,
    labels: np.ndarray,
    class_names: tuple[str, ...],
    names: list[str],
    index: np.ndarray,
    options: SourceOptions,
) -> ArrayImages | FeatureArray:
    ids = [names[int(i)] for i in index]
    if len(index) == len(x):  # spare a copy of everything
        rows, chosen = x, labels
    else:
        rows, chosen = x[index], labels[index]
    if rows.ndim == 2:
        if options.image_size is not None:
            raise ConfigError(f"image_size is {options.image_size}, but the arrays hold embeddings. Remove it.")
        features = torch.from_numpy(np.array(rows, dtype=np.float32))
        return FeatureArray(features, chosen, class_names, name="arrays", ids=ids)
    images = torch.from_numpy(channels_first(rows))
    resized = images if options.image_size is None else resize_images(images, options.image_size, squash=options.squash)
    return ArrayImages(resized, chosen, class_names, name="arrays", ids=ids, content=content_of(images))


def channels_first(images: np.ndarray) -> np.ndarray:
    """uint8 images in any usual order as contiguous (N, C, H, W), C in {1, 3}."""
    if images.dtype != np.uint8:
        raise DataError(
            f"Images of type {images.dtype}; expected uint8 with values 0 to 255. Convert them, for instance "
            "with np.rint(255 * x).astype(np.uint8) if they run from 0 to 1."
        )
    if images.ndim == 3:
        images = images[:, None]
    if images.ndim != 4:
        raise DataError(f"Images of shape {images.shape}; expected (N, H, W), (N, H, W, C) or (N, C, H, W).")
    first, last = images.shape[1] in (1, 3), images.shape[3] in (1, 3)
    if first == last:
        what = "could be either" if first else "has channels in neither place"
        raise DataError(
            f"Images of shape {images.shape}: expected (N, H, W, C) or (N, C, H, W) with 1 or 3 channels; this {what}."
        )
    return np.ascontiguousarray(images if first else images.transpose(0, 3, 1, 2))


@dataclass(frozen=True)
class _Content:
    """What the files hold; None for what is not there."""

    x: np.ndarray
    y: np.ndarray | None = None
    x_test: np.ndarray | None = None
    y_test: np.ndarray | None = None
    class_names: np.ndarray | None = None
    ids: np.ndarray | None = None
    ids_test: np.ndarray | None = None

    def names(self, root: Path) -> list[str]:
        """What the rows are called: their ids, or their numbers."""
        return _names(self.ids, len(self.x), root)

    def test_names(self, root: Path) -> list[str]:
        """What the test rows are called."""
        return _names(self.ids_test, 0 if self.x_test is None else len(self.x_test), root)


def _names(ids: np.ndarray | None, count: int, root: Path) -> list[str]:
    if ids is None:
        return list(map(str, range(count)))
    if ids.shape != (count,) or ids.dtype.kind not in "USiu":
        raise DataError(
            f"{root}: ids of type {ids.dtype} and shape {ids.shape}; expected a text or a whole number for each of "
            f"{count:,} rows."
        )
    names = [str(name) for name in (np.char.decode(ids, "utf-8") if ids.dtype.kind == "S" else ids)]
    repeated = [name for name, times in Counter(names).items() if times > 1]
    if repeated:
        raise DataError(f"{root}: ids that occur more than once: {some(repeated)}. Each row needs its own.")
    return names


def _read(root: Path, options: SourceOptions) -> _Content:
    loaded = _load(root)
    table = options.labels is not None and options.labels.suffix.lower() in _TABLES
    if isinstance(loaded, np.ndarray):
        y = _load(options.labels) if options.labels is not None and not table else None
        if isinstance(y, dict):
            raise DataError(f"{options.labels}: expected an .npy file with one label for each image.")
        content = _Content(loaded, y)
    else:
        if options.labels is not None and not table:
            raise ConfigError(
                f"{options.labels} goes with an .npy file; {root} has labels inside, or takes a CSV of `id,label` rows."
            )
        x = _one(loaded, X_NAMES, root)
        if x is None:
            found = some(sorted(loaded), 8) or "none"
            raise DataError(f"{root}: expected {_EXPECTED}. Found the arrays: {found}.")
        content = _Content(
            x,
            _one(loaded, _Y_NAMES, root),
            _one(loaded, _X_TEST_NAMES, root),
            _one(loaded, _Y_TEST_NAMES, root),
            loaded.get("class_names"),
            _one(loaded, _ID_NAMES, root),
            _one(loaded, _ID_TEST_NAMES, root),
        )
    for array in (content.x, content.x_test):
        if array is None:
            continue
        if array.ndim < 2 or not len(array):
            raise DataError(f"{root}: an array of shape {array.shape}; expected images or embeddings (N, D).")
        if array.dtype.kind not in "fiub":
            raise DataError(f"{root}: an array of type {array.dtype}; expected numbers.")
    return content


def _load(path: Path) -> np.ndarray | dict[str, np.ndarray]:
    try:
        with path.open("rb") as file:
            content: Any = np.load(file, allow_pickle=False)
            if isinstance(content, np.ndarray):
                return content
            return {name: content[name] for name in content.files}
    except IsADirectoryError as error:
        raise wrong_place(path, "arrays", _EXPECTED) from error
    except Exception as error:  # NumPy's reader stumbles over damage in any way: it tokenises headers as Python does
        raise DataError(
            f"{path} cannot be read as arrays: {error}. Arrays of Python objects are refused, since reading "
            "them can run code; save text labels with np.array(labels, dtype=str)."
        ) from error


def _one(content: dict[str, np.ndarray], names: tuple[str, ...], root: Path) -> np.ndarray | None:
    found = [name for name in names if name in content]
    if len(found) > 1:
        raise DataError(f"{root} has both {' and '.join(found)}; keep one, so that it is clear which counts.")
    return content[found[0]] if found else None


def _labels(content: _Content) -> tuple[np.ndarray, np.ndarray, tuple[str, ...]]:
    """Training labels, test labels (int64, −1 = unknown) and the class names."""
    count, names = len(content.x), content.class_names
    train = np.full(count, "") if content.y is None else _as_text(content.y)
    test = np.empty(0, dtype=np.str_) if content.y_test is None else _as_text(content.y_test)
    if len(train) != count:
        raise DataError(f"{count} images but {len(train)} labels; expected one for each.")
    seen = {str(name) for name in np.unique(np.concatenate([train, test])) if name}
    if names is None:
        keys = class_names = sorted_names(seen)
    else:
        class_names = tuple(str(name) for name in _text(names).ravel())
        by_number = all(text.isdecimal() for text in seen)
        keys = tuple(map(str, range(len(class_names)))) if by_number else class_names
        if seen - set(keys):
            raise DataError(
                f"Labels that class_names does not cover: {some(sorted(seen - set(keys)))}. Expected the "
                f"numbers 0 to {len(class_names) - 1}, or the names themselves."
            )
    numbers = {key: number for number, key in enumerate(keys)} | {"": UNKNOWN}
    return _numbered(train, numbers), _numbered(test, numbers), class_names


def _text(values: np.ndarray) -> np.ndarray:
    """An array as text; bytes are read as UTF-8."""
    try:
        return np.char.decode(values, "utf-8") if values.dtype.kind == "S" else values.astype(np.str_)
    except ValueError as error:  # not UTF-8, or numbers that are no characters
        raise DataError(f"Labels or class names that are not valid text: {error}. Save them as UTF-8.") from error


def _as_text(y: np.ndarray) -> np.ndarray:
    """Labels as text, with empty text for unknown."""
    if y.ndim != 1:
        raise DataError(f"Labels of shape {y.shape}; expected one label for each image, (N,).")
    if y.dtype.kind in "US":
        text = np.char.strip(_text(y))
        return np.where(text == str(UNKNOWN), "", text)
    if y.dtype.kind == "f":
        known = np.isfinite(y)
        if (y[known] != np.floor(y[known])).any():
            raise DataError("Labels with fractions; expected whole numbers, text, or −1 for unknown.")
        y = np.where(known, y, UNKNOWN).astype(np.int64)
    if y.dtype.kind not in "iub":
        raise DataError(f"Labels of type {y.dtype}; expected whole numbers or text.")
    y = y.astype(np.int64)
    if (y < UNKNOWN).any():
        raise DataError(f"Labels as low as {y.min()}; expected 0 or more, or −1 for unknown.")
    return np.where(y == UNKNOWN, "", y.astype(np.str_))


def _numbered(text: np.ndarray, numbers: dict[str, int]) -> np.ndarray:
    distinct, inverse = np.unique(text, return_inverse=True)
    return np.array([numbers[str(value)] for value in distinct], dtype=np.int64)[inverse]
