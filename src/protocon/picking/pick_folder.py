"""`protocon.pick`: the images of a folder, or rows of features, that are most worth labelling."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from protocon.base.parts import Parts
from protocon.errors import ConfigError, DataError
from protocon.picking.fast_model import FastModel
from protocon.picking.picker import Picker


@dataclass(frozen=True)
class PickedImage:
    """An image that is worth a label."""

    rank: int
    """1 is the most useful."""
    index: int
    """Its row among the features, or its place in the sorted list of files."""
    file: str
    """Its path within the folder; for features the row's number."""
    reason: str
    stands_for: int
    """How many images it is the most similar labelled or picked one of, itself included."""


def pick(
    images: str | Path | np.ndarray,
    n: int = 40,
    *,
    labels: str | Path | Sequence[int] | np.ndarray | None = None,
    out: str | Path | None = None,
    settings: Sequence[str] = (),
    seed: int = 0,
    console: Any = None,
) -> list[PickedImage]:
    """Pick the images that are most worth labelling, the most useful first.

    Without labels, those that together cover all images best. With labels, those that cover best what a quick model,
    trained on the labels, is unsure of. The same inputs give the same picks.

    Args:
        images: a folder or zip of images, which a frozen encoder looks at; or features (N, D).
        n: how many; fewer where there are fewer unlabelled images.
        labels: of a folder, a CSV file with rows of `file,label` (by default labels.csv in it, if there is one); of
            features, a class number per row, −1 = unknown.
        out: folder to which picks.csv, to be filled in, and picks.html are written; None: nowhere.
        settings: of the encoder as `key=value`, as `protocon train` takes them; for a folder.
        seed: draws which images may be picked where there are thousands.
        console: a rich console for progress; standard error by default.

    Examples:
        On 1,797 drawn digits:

        >>> import protocon
        >>> from sklearn.datasets import load_digits
        >>> digits = load_digits()
        >>> picks = protocon.pick(digits.data, n=20)
        >>> len(picks), sum(pick.stands_for for pick in picks)
        (20, 1797)
        >>> labels = [-1] * 1797
        >>> for pick in picks:
        ...     labels[pick.index] = int(digits.target[pick.index])
        >>> more = protocon.pick(digits.data, n=5, labels=labels)
        >>> any(pick.index in {first.index for first in picks} for pick in more)
        False
    """
    if n < 1:
        raise ConfigError(f"n is {n}; expected 1 or more")
    if isinstance(images, str | Path):
        return _pick_files(Path(images), n, labels, out=out, settings=settings, seed=seed, console=console)
    if isinstance(labels, str | Path):
        raise ConfigError(f"labels is the file {labels}; labels of features are numbers, one per row, −1 = unknown")
    if out is not None or settings:
        raise ConfigError("out and settings are for a folder of images; features have neither pictures nor an encoder")
    features = np.asarray(images, dtype=np.float32)
    known = None if labels is None else np.asarray(labels)
    return choose(features, n, known, seed=seed)


def choose(
    features: np.ndarray,
    n: int,
    labels: np.ndarray | None,
    *,
    files: Sequence[str] | None = None,
    parts: Parts | None = None,
    seed: int = 0,
) -> list[PickedImage]:
    """The picks among features (N, D) with labels (N,), −1 = unknown, and the names of their files.

    Args:
        features: (N, D).
        n: how many to pick.
        labels: (N,), −1 where unknown; None for no labels.
        files: names; numbers by default.
        parts: what features consist of; None: all are one part.
        seed: decides among equals.
    """
    picker = Picker(features, seed=seed, parts=parts)
    if labels is None or not (labels >= 0).any():
        found = picker.next(n)
    else:
        if labels.shape != (len(features),):
            raise DataError(f"labels of shape {labels.shape}; expected ({len(features)},), one per row of features")
        probs = FastModel(picker.seen).predict(labels).probs
        found = picker.next(n, labels, probs, shaped=True)
    return [
        PickedImage(rank, p.index, str(p.index) if files is None else files[p.index], p.reason, p.stands_for)
        for rank, p in enumerate(found, start=1)
    ]


def _pick_files(
    root: Path, n: int, labels: Any, *, out: str | Path | None, settings: Sequence[str], seed: int, console: Any
) -> list[PickedImage]:
    from rich.console import Console

    from protocon.picking.pick_files import pick_files
    from protocon.settings.config import build_config

    if labels is not None and not isinstance(labels, str | Path):
        raise ConfigError("labels of a folder are a CSV file with rows of file,label; an array does not name its files")
    data: dict[str, Any] = {"name": "folder", "root": root}
    if labels is not None:
        data["labels"] = Path(labels)
    # Frozen from the start: the views that are cached depend on the method, and the method on that.
    config = build_config(settings={"data": data, "network": {"frozen": True}}, overrides=settings)
    folder = None if out is None else Path(out)
    return pick_files(config, n, out=folder, seed=seed, console=console or Console(stderr=True)).picks
