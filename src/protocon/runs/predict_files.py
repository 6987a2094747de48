"""Labels of files with a trained run, batch by batch: never more than one batch of images in memory."""

import itertools
import os
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from protocon.data.files.decode import decode_image
from protocon.errors import DataError, ProtoConError
from protocon.runs.find_images import Wanted, find_images

if TYPE_CHECKING:
    from protocon.runs.trained import TrainedRun

_VALUES = 2**24
"""Numbers in a batch: 111 images of 224 pixels."""
_ARRAYS = ("x", "X", "x_test", "X_test", "features", "test_features")

Row = dict[str, Any]


def predict_rows(run: "TrainedRun", paths: Sequence[str | Path], *, probabilities: bool = False) -> Iterator[Row]:
    """One row for each image (or embedding) that the paths stand for, in their order, as batches are done.

    A row has `file` and either `label`, `confidence` and `top`, or `error`.

    Args:
        run: the trained run.
        paths: files, folders, zip archives or patterns; for runs on embeddings .npy and .npz files.
        probabilities: add the probabilities of all classes.
    """
    batches = _embedding_batches(run, paths) if len(run.shape) == 1 else _image_batches(run, paths)
    for rows, inputs in batches:
        probs = iter(run.predict_proba(inputs) if len(inputs) else inputs)
        for row in rows:
            if "error" not in row:
                own = next(probs)
                row |= run.describe(own)
                if probabilities:
                    row["probabilities"] = {
                        name: round(float(p), 6) for name, p in zip(run.class_names, own, strict=True)
                    }
            yield row


def batch_rows(run: "TrainedRun") -> int:
    """Inputs at a time: as many as evaluation takes, but no more than fit into little memory."""
    return max(1, min(run.config.run.eval_batch_size, _VALUES // int(np.prod(run.shape))))


def _image_batches(run: "TrainedRun", paths: Iterable[str | Path]) -> Iterator[tuple[list[Row], Tensor]]:
    """Rows and the pixels of those that could be decoded, uint8 (n, C, H, W)."""
    grey, size, squash = run.shape[0] == 1, run.shape[-1], run.config.data.fit == "squash"

    def decode(wanted: Wanted) -> Tensor | str:
        if wanted.store is None:
            return wanted.error or "cannot be read"
        try:
            with wanted.store.open(wanted.path) as file:
                return decode_image(file, size=size, grey=grey, squash=squash, name=wanted.name)
        except (ProtoConError, OSError) as error:
            return str(error)

    images = find_images(list(paths))
    # Pillow decodes without the interpreter's lock.
    with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
        while batch := list(itertools.islice(images, batch_rows(run))):
            found = list(pool.map(decode, batch))
            rows: list[Row] = [
                {"file": wanted.name} | ({"error": came} if isinstance(came, str) else {})
                for wanted, came in zip(batch, found, strict=True)
            ]
            pixels = [came for came in found if isinstance(came, Tensor)]
            yield rows, torch.stack(pixels) if pixels else torch.empty(0)


def _embedding_batches(run: "TrainedRun", paths: Iterable[str | Path]) -> Iterator[tuple[list[Row], Tensor]]:
    """Rows named `file:number` and their embeddings, float32 (n, D)."""
    for path in paths:
        try:
            features = _read_embeddings(Path(path), run.shape[0])
        except DataError as error:
            yield [{"file": str(path), "error": str(error)}], torch.empty(0)
            continue
        for start in range(0, len(features), batch_rows(run)):
            part = torch.from_numpy(np.array(features[start : start + batch_rows(run)], dtype=np.float32))
            finite = part.isfinite().all(1)
            rows: list[Row] = [
                {"file": f"{path}:{start + number}"} | ({} if good else {"error": "the row holds NaN or infinity"})
                for number, good in enumerate(finite.tolist())
            ]
            yield rows, part[finite]


def _read_embeddings(path: Path, length: int) -> np.ndarray:
    """Embeddings (N, D) of an .npy file, left on the disk, or of an .npz file."""
    if path.suffix.lower() not in (".npy", ".npz"):
        raise DataError(f"{path}: this run was trained on embeddings; give .npy or .npz files of them, not images")
    try:
        if path.suffix.lower() == ".npy":
            features: np.ndarray = np.load(path, mmap_mode="r", allow_pickle=False)
        else:
            with np.load(path, allow_pickle=False) as content:
                named = [name for name in _ARRAYS if name in content.files]
                if len(named) != 1:
                    found = ", ".join(content.files) or "none"
                    raise DataError(f"{path}: expected one of the arrays {', '.join(_ARRAYS)}; found: {found}")
                features = content[named[0]]
    except (OSError, EOFError, ValueError, zipfile.BadZipFile) as error:
        raise DataError(f"{path} cannot be read as an array: {error}") from error
    if features.ndim != 2 or features.shape[1] != length or features.dtype.kind not in "fiub":
        raise DataError(
            f"{path} holds {features.dtype} of shape {features.shape}; this run takes embeddings (N, {length})"
        )
    return features
