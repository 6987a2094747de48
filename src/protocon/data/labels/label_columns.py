"""Which columns of a table name the file and the label: by their headings, else by what is in them."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from protocon.data.files.names import shown
from protocon.errors import DataError

_FILES = (
    "file filename file_name filepath file_path path image image_id imageid image_name image_file image_path img photo "
    "photo_id picture name id"
)
_ALSO = (
    "species breed kind type tag tags classification category_name annotation variety genus disease diagnosis animal "
    "plant object what"
)
FILE_HEADINGS = frozenset(_FILES.split())
LABEL_HEADINGS = frozenset(("label", "labels", "class", "class_name", "category", "target"))
ALSO_LABELS = frozenset(_ALSO.split())
"""Taken for the label where there is none of `LABEL_HEADINGS`, and only one of these."""
_TRIED_ROWS = 200


class Columns(NamedTuple):
    """Which column is which."""

    file: int = 0
    label: int = 1
    heading: bool = False
    """Whether the first row is a heading."""
    said: str = ""
    """What was taken for what, where headings alone do not say it."""


def plain(heading: str) -> str:
    """A heading for comparison: `Image Name` and `image-name` are one."""
    return "_".join(heading.replace("-", " ").replace("_", " ").lower().split())


def _quoted(heading: str) -> str:
    """A heading within a sentence: it may have words of its own, such as `what it is`."""
    return f'"{shown(heading)}"'


def by_heading(fields: Sequence[str]) -> Columns | None:
    """The two columns if the first row is a heading that names both."""
    names = [plain(field) for field in fields]
    files = [i for i, name in enumerate(names) if name in FILE_HEADINGS]
    labels = [i for i, name in enumerate(names) if name in LABEL_HEADINGS]
    if files and labels:
        return Columns(files[0], labels[0], heading=True)
    also = [i for i, name in enumerate(names) if name in ALSO_LABELS]
    if files and len(also) == 1:
        said = f"column {_quoted(fields[also[0]])} is taken for the label, {_quoted(fields[files[0]])} for the file"
        return Columns(files[0], also[0], heading=True, said=said)
    return None


def choose_columns(
    rows: Sequence[Sequence[str]], *, name: str, names_image: Callable[[str], bool] | None = None
) -> Columns | None:
    """The two columns of a table; None where there is nothing to tell them by but their order.

    Args:
        rows: the table, its heading included.
        name: what messages call it.
        names_image: whether a cell names one of the images that there are.
    """
    found = by_heading(rows[0])
    width = len(rows[0])
    if found is not None or names_image is None or width < 2:
        return found
    body = [row for row in rows[1:_TRIED_ROWS] if len(row) == width]
    hits = [sum(names_image(row[column]) for row in body) for column in range(width)]
    if not any(hits):
        return None
    file = hits.index(max(hits))
    heading = not names_image(rows[0][file])
    if width == 2 and not heading and file == 0:
        return None  # rows `file,label`, which need no word
    label = _label_column(rows[0], body if heading else [rows[0], *body], file, heading=heading, name=name)
    titles = [_quoted(rows[0][c]) if heading else f"{c + 1}" for c in (label, file)]
    return Columns(file, label, heading, f"column {titles[0]} is taken for the label, {titles[1]} for the file")


def _label_column(first: Sequence[str], body: Sequence[Sequence[str]], file: int, *, heading: bool, name: str) -> int:
    """The column that is not the file and looks like classes; an error where it could be several."""
    others = [column for column in range(len(first)) if column != file]
    if heading:
        for known in (LABEL_HEADINGS, ALSO_LABELS):
            titled = [column for column in others if plain(first[column]) in known]
            if len(titled) == 1:
                return titled[0]
    if len(others) == 1:
        return others[0]
    repeated = []
    for column in others:
        values = [row[column] for row in body if row[column]]
        if len(values) > 1 and 2 <= len(set(values)) <= max(2, len(values) // 2):
            repeated.append(column)
    if len(repeated) == 1:
        return repeated[0]
    which = ", ".join(_quoted(first[c]) if heading else str(c + 1) for c in repeated or others)
    raise DataError(
        f"{name}: it is not clear which column is the label: {which}. "
        + ("Call it `label`." if heading else "Give the columns a heading: `file` and `label` for the two that count.")
    )
