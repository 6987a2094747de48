"""Two runs compared on the labels that both held out: the only ones on which their figures mean the same."""

import csv
from collections.abc import Sequence
from dataclasses import dataclass

from protocon.report.headline import audited, held_out
from protocon.report.record import Record
from protocon.runs import layout

_MIN_COMMON = 5
"""Fewer labels in common tell nothing."""


@dataclass(frozen=True)
class Pair:
    """What two runs say of the labels that both held out."""

    common: int
    first: int
    """Predicted as given by the first run."""
    second: int
    gained: int
    """Labels that only the second run predicts as given."""
    lost: int
    """Labels that only the first one does."""

    @property
    def comparable(self) -> bool:
        """Whether there are enough of them."""
        return self.common >= _MIN_COMMON


def pair_runs(first: Record, second: Record) -> Pair:
    """Compare two runs label by label. A label that was corrected in between is not counted."""
    before, after = _predictions(first), _predictions(second)
    rows = [(before[file], after[file]) for file in before.keys() & after.keys()]
    right = [(a[1] == a[0], b[1] == b[0]) for a, b in rows if a[0] == b[0]]
    return Pair(
        common=len(right),
        first=sum(a for a, _ in right),
        second=sum(b for _, b in right),
        gained=sum(b and not a for a, b in right),
        lost=sum(a and not b for a, b in right),
    )


def comparison_lines(records: Sequence[Record], labels: Sequence[str]) -> list[str]:
    """How the runs compare with the first one, where they had different labels; empty where they had the same.

    Args:
        records: of the runs.
        labels: what they are called.
    """
    label_sets = {str(record.data.get("used", {}).get("labelled")) for record in records}
    if len(label_sets) < 2 or not any(held_out(record) for record in records):
        return []
    text = (
        "These runs had different labels, so their held-out figures are not of the same images: labels from a list to "
        "look at are harder than others, and a better run can show a lower figure."
    )
    lines = [
        text,
        *(_line(records[0], other, labels[0], name) for other, name in zip(records[1:], labels[1:], strict=True)),
    ]
    if all(audited(record) for record in records):
        return [*lines, "The random audits are a fair comparison."]
    return [*lines, "For a fair estimate of each, answer for images drawn at random: protocon audit."]


def _line(first: Record, second: Record, name: str, other: str) -> str:
    pair = pair_runs(first, second)
    if not pair.comparable:
        few = "no label" if not pair.common else f"only {pair.common} label{'' if pair.common == 1 else 's'}"
        return f"{name} and {other} cannot be compared: both held out {few} in common."
    told = (
        f"On the {pair.common:,} labels that both held out, {name} predicts {pair.first:,} and {other} {pair.second:,}"
    )
    if not pair.gained and not pair.lost:
        return f"{told}: the same ones."
    return f"{told}: {pair.gained:,} only the latter, {pair.lost:,} only the former."


def _predictions(record: Record) -> dict[str, tuple[str, str]]:
    """File → given and found, of every label that was held out."""
    file = record.path / layout.CROSS_CHECK
    if not file.is_file():
        return {}
    try:
        with file.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as rows:
            return {row["file"]: (row["given"], row["found"]) for row in csv.DictReader(rows)}
    except (KeyError, csv.Error):
        return {}
