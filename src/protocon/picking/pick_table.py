"""picks.csv: what to label, in order, with a column to fill in; `protocon train --labels` reads it."""

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from protocon.base.atomic import write_bytes
from protocon.data.labels.label_file import read_label_rows
from protocon.data.labels.label_match import UNKNOWN_LABELS
from protocon.errors import DataError, RunError
from protocon.picking.pick_folder import PickedImage

HEADING = ("file", "label", "reason", "stands_for", "rank")
_KNOWN = "labelled already"


class KnownLabel(NamedTuple):
    """A label that is there, and how many images its image stands for beside the picks."""

    file: str
    label: str
    stands_for: int


def check_free(path: Path) -> None:
    """Raise if the table is there with labels in it: somebody's work is not written over."""
    if not path.exists():
        return
    try:
        rows = read_label_rows(path)
    except DataError as error:
        raise RunError(f"{path} exists and is no table of picks; choose another folder with --out") from error
    filled = sum(row.label not in UNKNOWN_LABELS for row in rows)
    if filled:
        raise RunError(
            f"{path} exists, and {filled} of its labels are filled in. For more picks that take them into account, "
            f"give --labels {path} and another folder with --out"
        )


def write_table(path: Path, picks: Sequence[PickedImage], known: Sequence[KnownLabel] = ()) -> None:
    """Write the picks, best first, and below them the labels that are there, so that one file has all of them.

    Args:
        path: of the CSV.
        picks: best first.
        known: labels that are there already.
    """
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(HEADING)
    for pick in picks:
        writer.writerow((pick.file, "", pick.reason, pick.stands_for, pick.rank))
    for row in known:
        writer.writerow((row.file, row.label, _KNOWN, row.stands_for, ""))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunError(
            f"cannot make the folder {path.parent}: {error.strerror or error}; choose another --out"
        ) from error
    # A byte order mark, so that spreadsheets read accents; stray bytes of names as the system has them.
    write_bytes(path, b"\xef\xbb\xbf" + text.getvalue().encode("utf-8", "surrogateescape"))
