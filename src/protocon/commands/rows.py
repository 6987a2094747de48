"""Rows of predictions, written as they come: CSV, one JSON object, or text."""

import csv
import json
from collections.abc import Iterable, Sequence
from typing import Any, TextIO

Row = dict[str, Any]


def write_csv(rows: Iterable[Row], out: TextIO, *, run: str, classes: Sequence[str] = ()) -> None:  # noqa: ARG001
    """file, label, confidence, triage, error, and a column for each class if its probabilities are asked for.

    Args:
        rows: one per file, as `predict_rows` gives them.
        out: where they go.
        run: the run's folder, for the record.
        classes: names of the classes, where probabilities are asked for.
    """
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["file", "label", "confidence", "triage", "error", *(f"p({name})" for name in classes)])
    for row in rows:
        shares = row.get("probabilities", {})
        cells = [row.get(name, "") for name in ("file", "label", "confidence", "triage", "error")]
        writer.writerow([*cells, *(shares.get(name, "") for name in classes)])


def write_json(rows: Iterable[Row], out: TextIO, *, run: str, classes: Sequence[str] = ()) -> None:  # noqa: ARG001
    """`{"run": …, "predictions": […]}`, without ever holding it whole.

    Args:
        rows: one per file, as `predict_rows` gives them.
        out: where they go.
        run: the run's folder, for the record.
        classes: names of the classes, where probabilities are asked for.
    """
    out.write(f'{{"run": {json.dumps(run, ensure_ascii=False)}, "predictions": [')
    separator = ""
    for row in rows:
        out.write(separator + json.dumps(row, ensure_ascii=False))
        separator = ",\n"
    out.write("]}\n")


def write_text(rows: Iterable[Row], out: TextIO, *, run: str, classes: Sequence[str] = ()) -> None:  # noqa: ARG001
    """A line for each file.

    Args:
        rows: one per file, as `predict_rows` gives them.
        out: where they go.
        run: the run's folder, for the record.
        classes: names of the classes, where probabilities are asked for.
    """
    for row in rows:
        said = row.get("error") or f"{row['label']}  {row['confidence']:.3f}  {row['triage']}"
        shares = "".join(f"  {name} {share:.3f}" for name, share in row.get("probabilities", {}).items())
        out.write(f"{row['file']}: {said}{shares}\n")


WRITERS = {"csv": write_csv, "json": write_json, "text": write_text}
