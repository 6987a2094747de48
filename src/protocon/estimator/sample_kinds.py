"""What X may be: features (n, D), images as arrays, or image files; and how each becomes a set of the engine."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Literal

import numpy as np
import torch
from torch import Tensor

from protocon.data.files.decode_all import Members
from protocon.data.files.resize_arrays import resize_images
from protocon.data.files.stores import FileEntry
from protocon.data.imageset import ArrayImages, DataBundle, DataHints, FeatureArray
from protocon.data.source_options import SourceOptions
from protocon.data.sources.arrays import channels_first
from protocon.data.sources.listing import FileListing, make_bundle
from protocon.errors import DataError
from protocon.settings.auto import fit_for, image_size_for
from protocon.settings.config import RunConfig

Kind = Literal["features", "images", "files"]

_LEVELS = 255.0
_ROWS = 1024


def kind_of(X: Any) -> Kind:
    """Decided by shape and type alone: paths, arrays of three or four dimensions, else features."""
    if isinstance(X, list | tuple):
        first = X[0] if len(X) else None
        if isinstance(first, str | os.PathLike):
            return "files"
        inner = getattr(first, "ndim", None)
        if inner is None and isinstance(first, list | tuple):
            inner = np.ndim(first)
        return "images" if inner in (2, 3) else "features"
    if getattr(X, "ndim", None) in (3, 4):
        return "images"
    dtype = getattr(X, "dtype", None)
    if getattr(X, "ndim", None) == 1 and len(X) and dtype is not None and getattr(dtype, "kind", "O") in "UO":
        return (
            "files"
            if all(isinstance(value, str | os.PathLike) for value in np.asarray(X, dtype=object))
            else "features"
        )
    return "features"


@dataclass(frozen=True)
class FeatureSpread:
    """Mean and standard deviation of each feature over the training set, float64 (D,).

    Features are centred before training: a view that drops a feature then leaves its mean, not a far-away zero.
    """

    mean: np.ndarray
    std: np.ndarray

    @classmethod
    def of(cls, rows: np.ndarray) -> "FeatureSpread":
        """Of features (n, D); a constant one counts as having a spread of 1."""
        mean, std = rows.mean(0), rows.std(0)
        return cls(mean, np.where(std > 1e-12 * np.maximum(1.0, np.abs(mean)), std, 1.0))


def feature_bundle(rows: np.ndarray, codes: np.ndarray, names: Sequence[str], spread: FeatureSpread) -> DataBundle:
    """Centred and scaled features (n, D) as training data.

    Args:
        rows: features (n, D) as they were given.
        codes: class of each row, −1 for unlabelled, (n,).
        names: of the classes.
        spread: of the training features.
    """
    scaled = torch.from_numpy(((rows - spread.mean) / spread.std).astype(np.float32))
    return DataBundle(FeatureArray(scaled, codes, names, name="features"), None, DataHints(flip=False))


def image_bundle(images: np.ndarray, codes: np.ndarray, names: Sequence[str], config: RunConfig) -> DataBundle:
    """uint8 images (n, C, H, W) as training data, at the side that the config asks for or their own.

    Args:
        images: pixels as levels.
        codes: class of each image, −1 for unlabelled, (n,).
        names: of the classes.
        config: settings of the run.
    """
    side = config.data.size_asked or image_size_for(min(images.shape[2:]), config)
    resized = resize_images(torch.from_numpy(images), side, squash=fit_for(config) == "squash")
    return DataBundle(ArrayImages(resized, codes, names, name="images"), None, DataHints(flip=True))


def file_bundle(paths: "PathStore", codes: np.ndarray, names: Sequence[str], config: RunConfig) -> DataBundle:
    """Image files as training data. A file that cannot be decoded is an error: y has a row for it.

    Args:
        paths: the files.
        codes: class of each file, −1 for unlabelled, (n,).
        names: of the classes.
        config: settings of the run.
    """
    data = config.data

    def load(side: int | None) -> DataBundle:
        squash = fit_for(config) == "squash"
        options = SourceOptions(image_size=side, grey=data.grey, squash=squash, storage=data.storage, bad_files="error")
        listing = FileListing("files", paths, tuple(names), Members(paths.files(), codes), None, [])
        return make_bundle(listing, options)

    bundle = load(data.size_asked)
    side = bundle.train.shape[-1]
    wanted = image_size_for(side, config)
    return load(wanted) if data.size_asked is None and side != wanted else bundle


@dataclass(frozen=True)
class PathStore:
    """Files anywhere, named by their number, so that a path may occur twice."""

    paths: tuple[Path, ...]

    @property
    def where(self) -> str:
        """What a message calls this store."""
        return f"{len(self.paths)} image files"

    def files(self, under: str = "") -> list[FileEntry]:  # noqa: ARG002  # there are no folders
        """Every file, in the order given."""
        return [FileEntry(str(number), _size(path)) for number, path in enumerate(self.paths)]

    def folders(self, under: str = "") -> list[str]:  # noqa: ARG002
        """None."""
        return []

    def open(self, path: str) -> BinaryIO:
        """Open one file for reading."""
        try:
            return self.paths[int(path)].open("rb")
        except OSError as error:
            raise DataError(f"{self.full_name(path)} cannot be opened: {error.strerror}.") from error

    def full_name(self, path: str) -> str:
        """The file as it was given."""
        return str(self.paths[int(path)])


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}. X must list image files that exist.") from error


def path_store(X: Any) -> PathStore:
    """Paths of a list, an array or a pandas column."""
    paths = list(X)
    wrong = next((path for path in paths if not isinstance(path, str | os.PathLike)), None)
    if wrong is not None:
        raise DataError(f"X lists image files, but holds {wrong!r} too; expected paths only.")
    return PathStore(tuple(Path(path) for path in paths))


def pixel_scale(images: np.ndarray) -> float:
    """What to multiply pixels by for levels 0 to 255: 255 for booleans and for floats up to 1, else 1."""
    return _LEVELS if images.dtype.kind in "fb" and float(images.max(initial=0)) <= 1.0 else 1.0


def as_array(X: Any) -> np.ndarray:
    """Images as one array of numbers; DataError where they differ in shape or are not finite."""
    try:
        images = np.asarray(X.detach().cpu() if isinstance(X, Tensor) else X)
    except ValueError as error:
        raise DataError(f"X is a list of images of different shapes: {error}. Resize them, or give paths.") from error
    if images.dtype.kind not in "fiub" or images.ndim not in (3, 4):
        raise DataError(f"Images of type {images.dtype} and shape {images.shape}; expected numbers, (n, H, W[, C]).")
    if not images.size:
        raise DataError(f"Found array with 0 sample(s) (shape={images.shape}) while a minimum of 1 is required.")
    if images.dtype.kind == "f" and not np.isfinite(images).all():
        raise DataError("Input X contains NaN or infinity.")
    return images


def as_levels(images: np.ndarray, scale: float) -> np.ndarray:
    """Images in any usual order as uint8 (n, C, H, W), by the scale that training settled on."""
    if images.dtype != np.uint8 or scale != 1.0:
        low, high = float(images.min()) * scale, float(images.max()) * scale
        if low < 0.0 or high > _LEVELS:
            raise DataError(
                f"Pixels from {images.min():g} to {images.max():g}; expected 0 to {_LEVELS / scale:g}, as in training "
                "(0 to 1, or 0 to 255). Scale them."
            )
        levels = np.empty(images.shape, dtype=np.uint8)
        for start in range(0, len(images), _ROWS):  # in parts: a float copy of everything may not fit
            part = slice(start, start + _ROWS)
            levels[part] = np.rint(images[part].astype(np.float32) * np.float32(scale))
        images = levels
    return channels_first(images)
