"""Rows of `file,label` from a CSV file or a workbook, as spreadsheets and people write them."""

import csv
import io
import itertools
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from protocon.data.files.names import shown
from protocon.data.files.near_path import near_path
from protocon.data.labels.answers import labelled_files, read_log
from protocon.data.labels.label_columns import Columns, by_heading, choose_columns
from protocon.data.labels.own_table import is_own_table, own_labels
from protocon.data.labels.spreadsheet import is_workbook, read_workbook
from protocon.errors import DataError

_SEPARATORS = ",;\t"
_TRIED_ROWS = 50
_FILE_LIKE = re.compile(r"\.[A-Za-z]{3,4}$")


class LabelRow(NamedTuple):
    """One row: its line number in the file, the file it names, the label (empty = unknown)."""

    line: int
    file: str
    label: str
    source: str = ""
    """The labels file, where rows of several are put together."""
    listed: bool = False
    """Whether it answers for an image of a list to look at, which is harder than others."""


class LabelTable(NamedTuple):
    """What a labels file holds."""

    rows: list[LabelRow]
    problems: list[str]
    """Rows that cannot be understood, one line each: `line 3: …`."""
    notes: tuple[str, ...] = ()
    """What was taken for what, where that is not plain."""


def read_label_rows(path: Path) -> list[LabelRow]:
    """Rows of a list that must be whole: the first row that cannot be understood is an error."""
    table = read_label_table(path)
    if table.problems:
        raise DataError(f"{path}, {table.problems[0]}.")
    return table.rows


NamesImage = Callable[[str], bool]
"""Whether a cell names one of the images that there are."""


def read_label_table(path: Path, *, names_image: NamesImage | None = None) -> LabelTable:
    """Read a table of files and labels; see `parse_label_table`. A .jsonl file is a log of `protocon label`."""
    if path.suffix.lower() == ".jsonl" and path.is_file():
        return _logged(path)
    try:
        content = path.read_bytes()
    except FileNotFoundError as error:
        guess = near_path(path)
        hint = f"Did you mean {guess}?" if guess else "Expected a CSV with rows `file,label`."
        raise DataError(f"Labels file {path} does not exist. {hint}") from error
    except OSError as error:
        raise DataError(f"Labels file {path} cannot be read: {error.strerror}.") from error
    return parse_label_table(content, str(path), names_image=names_image)


def _logged(path: Path) -> LabelTable:
    entries, damaged = read_log(path)
    labels, changed = labelled_files(entries, path.parent)
    return LabelTable([LabelRow(n, file, label) for n, (file, label) in enumerate(labels, 1)], damaged + changed)


def parse_label_table(content: bytes, name: str, *, names_image: NamesImage | None = None) -> LabelTable:
    """Read a CSV or a workbook of two columns, with or without a heading.

    A byte order mark (also of UTF-16), Windows line ends, quoted fields with separators and line breaks in them, blank
    lines, semicolons or tabs as separators are all understood. More columns are allowed where a heading, or the images
    that they name, say which two count. Of a run's own labels.csv only a person's labels count.

    Args:
        content: of the file.
        name: what messages call it.
        names_image: whether a cell names one of the images, to tell columns by.
    """
    sheet, separator = "", ","
    if is_workbook(content):
        lines, sheet = read_workbook(content, name)
    else:
        text = _decode(content, name)
        separator = _separator(text)
        lines = list(_lines(text, separator, name))
    if not lines:
        raise DataError(f"Labels file {name} is empty. Expected rows `file,label`.")
    if max(len(fields) for _, fields in lines) == 1:
        raise DataError(
            f"Labels file {name} has one column, which begins with {shown(lines[0][1][0])!r}. Expected two, "
            "`file,label`, with a comma, semicolon or tab between them."
        )
    notes = (f"sheet {sheet} is read",) if sheet else ()
    if is_own_table(lines[0][1]):
        found, said = own_labels(lines[0][1], lines[1:])
        problems = [f"line {row.line}: no file is named" for row in found if not row.file]
        return LabelTable([LabelRow(*row) for row in found if row.file], problems, (*notes, said))
    columns = choose_columns([fields for _, fields in lines], name=name, names_image=names_image)
    table = _pick(lines, columns, separator)
    return table._replace(notes=(*notes, columns.said) if columns and columns.said else notes)


def _pick(lines: list[tuple[int, list[str]]], columns: Columns | None, separator: str) -> LabelTable:
    """The two columns of every row."""
    place = columns or Columns()
    rows: list[LabelRow] = []
    problems: list[str] = []
    for line, fields in lines[1:] if place.heading else lines:
        if columns is None and len(fields) != 2:
            problems.append(
                f"line {line}: {len(fields)} columns; expected two, `file,label` (quote names that contain "
                "the separator, or give a heading `file,label` if there are more columns)"
            )
        elif len(fields) <= max(place.file, place.label) or not fields[place.file]:
            problems.append(f"line {line}: expected a file and a label, got {separator.join(fields)!r}")
        else:
            rows.append(LabelRow(line, fields[place.file], fields[place.label]))
    return LabelTable(rows, problems)


def _decode(content: bytes, name: str) -> str:
    wide = content.startswith((b"\xff\xfe", b"\xfe\xff"))  # how Excel saves "Unicode text"
    try:
        text = content.decode("utf-16" if wide else "utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"Labels file {name} is not UTF-8 text ({error.reason}). Save it as UTF-8.") from error
    if "\0" in text:  # UTF-16 without its mark, UTF-32, or no text at all
        raise DataError(f"Labels file {name} is not UTF-8 text (it has null characters). Save it as UTF-8.")
    return text


def _lines(text: str, separator: str, name: str) -> Iterator[tuple[int, list[str]]]:
    """Line number and fields of every row that is not blank."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, skipinitialspace=True, strict=True)
    try:
        for fields in reader:
            fields = [field.strip() for field in fields]
            if any(fields):
                yield reader.line_num, fields
    except csv.Error as error:
        raise DataError(f"{name}, line {reader.line_num}: {error}. Check its quotes.") from error


def _separator(text: str) -> str:
    """The separator under which the first rows look most like a labels file; the comma where none does."""

    def likeness(separator: str) -> tuple[bool, int, int, int]:
        try:
            rows = [fields for _, fields in itertools.islice(_lines(text, separator, ""), _TRIED_ROWS)]
        except DataError:
            return False, -1, -1, -1  # its quotes make no sense with this separator
        named = sum(len(fields) == 2 and any(map(_FILE_LIKE.search, fields)) for fields in rows)
        known = bool(rows) and by_heading(rows[0]) is not None
        wide = sum(len(fields) > 1 and len(fields) == len(rows[0]) for fields in rows)
        return known, named, sum(len(fields) == 2 for fields in rows), wide

    return max(_SEPARATORS, key=likeness)


def sorted_names(names: set[str]) -> tuple[str, ...]:
    """Class names in reading order: numbers by value, so that 10 comes after 9."""
    return tuple(sorted(names, key=_natural_key))


def _natural_key(name: str) -> tuple[list[tuple[int, int, str]], str]:
    pieces = re.split(r"(\d+)", name)
    # Python refuses to read numbers of thousands of digits; as text they sort after all others.
    return [(0, int(p), "") if p.isdecimal() and len(p) < 1000 else (1, 0, p) for p in pieces if p], name
