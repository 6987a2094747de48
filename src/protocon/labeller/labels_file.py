"""labels.csv, derived from the log of answers; a file that somebody else wrote or edited is never lost.

A small hidden file beside it holds digests of what we wrote, so that our own labels.csv is told from an edited one.
"""

import csv
import hashlib
import io
import json
from collections.abc import Iterable
from pathlib import Path

from protocon.base.atomic import write_bytes
from protocon.data.labels.label_file import LabelRow, read_label_table

HEADING = ("file", "label", "why")


class LabelsFile:
    """labels.csv of a folder.

    Args:
        path: of the file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._ours = path.with_name(f".{path.name}.ours")

    def foreign_rows(self) -> list[LabelRow]:
        """Rows of a file that is there but not as we wrote it; none if it is ours, or not there."""
        if not self.path.is_file() or self._digest() in self._known():
            return []
        return [row for row in read_label_table(self.path).rows if row.label and row.label != "-1"]

    def digest(self) -> str:
        """Of the file as it is now."""
        return self._digest()

    def write(self, rows: Iterable[tuple[str, str, str]]) -> Path | None:
        """Write path, label and reason of each row. What somebody else wrote is kept under the name returned."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(HEADING)
        writer.writerows(sorted(rows))
        content = text.getvalue().encode("utf-8")
        current = self._digest() if self.path.is_file() else ""
        if current == hashlib.sha256(content).hexdigest():
            return None
        kept = self._set_aside() if current and current not in self._known() else None
        # Both are noted before the file changes: whenever we are killed, it has one of them.
        write_bytes(self._ours, json.dumps([current, hashlib.sha256(content).hexdigest()]).encode())
        write_bytes(self.path, content)
        return kept

    def _set_aside(self) -> Path:
        number = 1
        while (kept := self.path.with_name(f"{self.path.stem}.before-{number}.csv")).exists():
            number += 1
        write_bytes(kept, self.path.read_bytes())
        return kept

    def _digest(self) -> str:
        return hashlib.sha256(self.path.read_bytes()).hexdigest()

    def _known(self) -> tuple[str, ...]:
        try:
            return tuple(json.loads(self._ours.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            return ()
