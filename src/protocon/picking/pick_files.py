"""Picks from a folder of images, written as a table to fill in and as a page of pictures."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console

from protocon.errors import DataError
from protocon.picking.folder_features import Encoded, encode_folder
from protocon.picking.pick_folder import PickedImage, choose
from protocon.picking.pick_table import KnownLabel, check_free, write_table
from protocon.picking.picker import Picker
from protocon.picking.write_page import write_page
from protocon.settings.config import RunConfig

TABLE = "picks.csv"
PAGE = "picks.html"


@dataclass(frozen=True)
class Picked:
    """What was picked, and from what."""

    picks: list[PickedImage]
    images: int
    labelled: int
    warnings: tuple[str, ...]


def pick_files(config: RunConfig, n: int, *, out: Path | None, seed: int, console: Console) -> Picked:
    """Pick images of a folder.

    Args:
        config: where the images are, what labels there are, which encoder looks at them.
        n: how many.
        out: folder for the table and the page; None: nowhere. A table that somebody has begun to fill in is left alone.
        seed: see `Picker`.
        console: for progress.
    """
    if out is not None:
        check_free(out / TABLE)
    encoded = encode_folder(config, console)
    images = encoded.images
    picks = choose(encoded.features, n, images.labels, files=images.ids, parts=encoded.parts, seed=seed)
    if not picks:
        raise DataError(f"all {len(images):,} images have labels; there is nothing left to pick")
    if out is not None:
        known = _known(encoded, [pick.index for pick in picks], seed)
        write_table(out / TABLE, picks, known)
        write_page(out / PAGE, picks, images, known=len(known), title=str(config.data.root))
    return Picked(picks, len(images), int((images.labels >= 0).sum()), encoded.warnings)


def _known(encoded: Encoded, picked: list[int], seed: int) -> list[KnownLabel]:
    """The labels that there are, with what each stands for beside the picks."""
    images = encoded.images
    places = np.flatnonzero(images.labels >= 0)
    if not len(places):
        return []
    counts = Picker(encoded.features, seed=seed, parts=encoded.parts).stands_for([*places.tolist(), *picked])
    return [
        KnownLabel(images.ids[int(place)], images.class_names[images.labels[place]], int(count))
        for place, count in zip(places, counts, strict=False)
    ]
