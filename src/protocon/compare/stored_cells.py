"""The cells of a comparison, read back from the file that it left."""

import csv
from collections.abc import Sequence
from pathlib import Path

from protocon.compare.comparison import CellRecord, Comparison
from protocon.errors import RunError


def read_cells(file: Path, *, suffix: str = "") -> list[CellRecord]:
    """The finished cells of a `cells.csv`.

    Args:
        file: with at least the columns method, labels, seed and accuracy.
        suffix: of the methods' names, where a setting that all of them share is to be told apart.
    """
    try:
        with file.open(encoding="utf-8", newline="") as lines:
            return [
                CellRecord(
                    method=row["method"] + suffix,
                    labels=int(row["labels"]),
                    seed=int(row["seed"]),
                    accuracy=float(row["accuracy"]),
                    seconds=_number(row.get("seconds")),
                    memory=_number(row.get("memory")),
                    run=row.get("run"),
                    macro_accuracy=_number(row.get("macro_accuracy")),
                )
                for row in csv.DictReader(lines)
                if row["accuracy"]
            ]
    except (OSError, KeyError, ValueError) as error:
        raise RunError(f"{file} is not the cells.csv of a comparison: {error!r}") from error


def comparison_of(records: Sequence[CellRecord], data: str, *, seeds: int | None = None) -> Comparison:
    """A comparison from its cells, in their order.

    Args:
        records: finished cells.
        data: name of the data.
        seeds: that it is to have in the end; by default as many as there are.
    """
    return Comparison(
        data=data,
        methods=tuple(dict.fromkeys(record.method for record in records)),
        labels=tuple(sorted({record.labels for record in records})),
        seeds=seeds or len({record.seed for record in records}),
        records=tuple(records),
    )


def _number(text: str | None) -> float | None:
    return float(text) if text else None
