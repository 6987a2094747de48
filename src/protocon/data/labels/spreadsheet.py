"""Rows of an Excel workbook, for people who keep their labels in one."""

import io
import warnings
import zipfile
from datetime import date, datetime
from importlib.util import find_spec
from typing import Any

from protocon.errors import DataError

_ZIP = b"PK\x03\x04"
_OLD_EXCEL = b"\xd0\xcf\x11\xe0"
_MAX_BYTES = 2**28
"""A workbook states any size it likes; no list of labels needs a quarter of a gigabyte of XML."""
_MAX_ROWS = 2**20
_MAX_COLUMNS = 200


def is_workbook(content: bytes) -> bool:
    """Whether a file is a spreadsheet rather than text."""
    return content.startswith((_ZIP, _OLD_EXCEL))


def read_workbook(content: bytes, name: str) -> tuple[list[tuple[int, list[str]]], str]:
    """Line number and cells of every row that is not blank, of the first sheet that has two columns; and its title.

    Args:
        content: of the file.
        name: what messages call it.
    """
    if content.startswith(_OLD_EXCEL):
        raise DataError(f"{name} is a workbook of an old Excel (.xls). Save it as .xlsx or as CSV.")
    if find_spec("openpyxl") is None:
        raise DataError(
            f"{name} is an Excel workbook. To read it: pip install 'protocon[excel]'. Or save it as CSV (UTF-8)."
        )
    import openpyxl

    _refuse_huge(content, name)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about styles and extensions, which do not matter here
            book = openpyxl.load_workbook(io.BytesIO(content), read_only=True, data_only=True)
            for sheet in book.worksheets:
                rows = _rows(sheet)
                if any(len(cells) > 1 for _, cells in rows):
                    return rows, sheet.title if len(book.worksheets) > 1 else ""
    except (DataError, MemoryError):
        raise
    except Exception as error:  # openpyxl raises whatever its parsers stumble over
        raise DataError(
            f"{name} cannot be read as a workbook ({type(error).__name__}: {str(error)[:200]}). Save it as CSV (UTF-8)."
        ) from error
    raise DataError(f"{name} has no sheet with two columns. Expected a file and its label in each row.")


def _refuse_huge(content: bytes, name: str) -> None:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            size = sum(member.file_size for member in archive.infolist())
    except Exception as error:
        raise DataError(f"{name} is a damaged workbook, or no workbook: {error}. Save it again, or as CSV.") from error
    if size > _MAX_BYTES:
        raise DataError(f"{name} holds {size:,} bytes, too many for a list of labels. Save the labels alone, as CSV.")


def _rows(sheet: Any) -> list[tuple[int, list[str]]]:
    rows: list[tuple[int, list[str]]] = []
    cells = sheet.iter_rows(max_row=_MAX_ROWS, max_col=_MAX_COLUMNS, values_only=True)
    for number, row in enumerate(cells, start=1):
        texts = [_text(value) for value in row]
        if any(texts):
            rows.append((number, texts))
    width = max((_width(texts) for _, texts in rows), default=0)
    return [(number, (texts + [""] * width)[:width]) for number, texts in rows]


def _width(texts: list[str]) -> int:
    return max((place for place, text in enumerate(texts, start=1) if text), default=0)


def _text(value: Any) -> str:
    """A cell as a person reads it: 7, not 7.0."""
    if value is None:
        return ""
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).strip()
