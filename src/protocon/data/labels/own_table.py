"""A run's own labels.csv, given back as labels: what a person said, and not what the model did."""

from collections.abc import Sequence
from typing import NamedTuple

_OURS = frozenset(("file", "label", "triage", "review_rank", "given", "looks_like"))
_OLD = frozenset(("file", "split", "given", "refined", "triage"))

FROM_LIST = "your answer to a list to look at"
"""In the column `why` of such a label, so that later runs know it too."""


class OwnRow(NamedTuple):
    """A row of a run's own table."""

    line: int
    file: str
    label: str
    """Empty unless a person gave it."""
    source: str = ""
    listed: bool = False
    """Whether it answers for an image of a list to look at, which is harder than others."""


def is_own_table(heading: Sequence[str]) -> bool:
    """Whether a heading is that of a run's labels.csv, of this version or of 0.1."""
    return set(heading) >= _OURS or set(heading) >= _OLD


def own_labels(heading: Sequence[str], rows: Sequence[tuple[int, Sequence[str]]]) -> tuple[list[OwnRow], str]:
    """Every row, its label empty unless a person gave it; and a word on what was used.

    A person's are the labels that the run was given (corrected or not), cells of `label` that were changed, and rows of
    the review list whose `triage` was changed to `accept`.
    """
    columns = {name: place for place, name in enumerate(heading)}
    old = "label" not in columns
    found: list[OwnRow] = []
    counts = {"given": 0, "corrected": 0, "added": 0, "confirmed": 0}
    for line, cells in rows:
        row = {name: cells[place].strip() if place < len(cells) else "" for name, place in columns.items()}
        label = row["given"] if old else row["label"]
        kind = "given" if old and label else "" if old else _whose(row)
        if kind:
            counts[kind] += 1
        listed = kind in ("added", "confirmed") or (bool(kind) and row.get("why", "").endswith(FROM_LIST))
        found.append(OwnRow(line, row["file"], label if kind else "", listed=listed))
    used = ", ".join(f"{count:,} {kind}" for kind, count in counts.items() if count) or "none"
    return found, f"a run's own table: labels that a person gave are used ({used}), the model's are not"


def _whose(row: dict[str, str]) -> str:
    """In which way a person gave the label; empty if the model did."""
    if row["given"]:
        return "given" if row["label"] == row["given"] else "corrected"
    if row["label"] != row["looks_like"]:
        return "added"
    return "confirmed" if row["review_rank"] and row["triage"].lower() == "accept" else ""
