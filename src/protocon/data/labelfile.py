"""Rows of `file,label` from a CSV file, as spreadsheets and people write them."""

import csv
import io
import re
from pathlib import Path
from typing import NamedTuple

from protocon.errors import DataError

_FILE_HEADINGS = frozenset(("file", "filename", "file_name", "path", "image", "image_id", "name", "id"))
_LABEL_HEADINGS = frozenset(("label", "labels", "class", "class_name", "category", "target"))


class LabelRow(NamedTuple):
    """One row: its line number in the file, the file it names, the label (empty = unknown)."""

    line: int
    file: str
    label: str


def read_label_rows(path: Path) -> list[LabelRow]:
    """Read a CSV of two columns, with or without a heading.

    A byte order mark, Windows line ends, quoted fields, blank lines, semicolons or tabs as separators are
    all understood; more columns are allowed where a heading says which two count.
    """
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError as error:
        raise DataError(f"Labels file {path} does not exist. Expected a CSV with rows `file,label`.") from error
    except UnicodeDecodeError as error:
        raise DataError(f"Labels file {path} is not UTF-8 text ({error.reason}). Save it as UTF-8.") from error
    except OSError as error:
        raise DataError(f"Labels file {path} cannot be read: {error.strerror}.") from error
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=_delimiter(text), skipinitialspace=True, strict=True)
    rows: list[tuple[int, list[str]]] = []
    try:
        for fields in reader:
            fields = [field.strip() for field in fields]
            if any(fields):
                rows.append((reader.line_num, fields))
    except csv.Error as error:
        raise DataError(f"{path}, line {reader.line_num}: {error}. Check its quotes.") from error
    if not rows:
        raise DataError(f"Labels file {path} is empty. Expected rows `file,label`.")
    columns = _heading(rows[0][1])
    if columns is not None:
        rows = rows[1:]
    return [_row(path, line, fields, columns) for line, fields in rows]


def _delimiter(text: str) -> str:
    first = text.lstrip().partition("\n")[0]
    return max(",;\t", key=first.count)  # the comma where none of them occurs


def _heading(fields: list[str]) -> tuple[int, int] | None:
    """Positions of the two columns if the first row is a heading."""
    lowered = [field.lower() for field in fields]
    files = [i for i, field in enumerate(lowered) if field in _FILE_HEADINGS]
    labels = [i for i, field in enumerate(lowered) if field in _LABEL_HEADINGS]
    return (files[0], labels[0]) if files and labels else None


def _row(path: Path, line: int, fields: list[str], columns: tuple[int, int] | None) -> LabelRow:
    if columns is None and len(fields) != 2:
        raise DataError(
            f"{path}, line {line}: {len(fields)} columns; expected two, `file,label`. Quote names that "
            "contain the separator, or give a heading `file,label` if there are more columns."
        )
    file_column, label_column = columns or (0, 1)
    if len(fields) <= max(file_column, label_column) or not fields[file_column]:
        raise DataError(f"{path}, line {line}: expected a file and a label, got {','.join(fields)!r}.")
    return LabelRow(line, fields[file_column], fields[label_column])


def sorted_names(names: set[str]) -> tuple[str, ...]:
    """Class names in reading order: numbers by value, so that 10 comes after 9."""
    return tuple(sorted(names, key=_natural_key))


def _natural_key(name: str) -> tuple[list[tuple[int, int, str]], str]:
    pieces = re.split(r"(\d+)", name)
    return [(0, int(p), "") if p.isdecimal() else (1, 0, p) for p in pieces if p], name
