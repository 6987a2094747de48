"""Folders of photographs with labels as people have them, through the way in that `protocon train` takes.

Everything may be odd at once: names and kinds of files, where the labels file lies and how it is given, its encoding,
separator, headings, names and classes, a workbook, a run's own table, a log of the labelling page.
"""

import contextlib
import io
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from PIL import Image
from rich.console import Console

from protocon.base.say import say
from protocon.commands.data import show
from protocon.commands.data_argument import find_inputs
from protocon.data.files.kinds import heic_is_readable, readable_suffixes
from protocon.data.labels.label_split import make_split
from protocon.data.registry import OWN
from protocon.engine.setup.announce import describe_data, file_lines
from protocon.runs.layout import LABEL_COLUMNS
from protocon.runs.run_data import load_data
from tests.engine.layouts import picture
from tests.hostile import every_file

FOLDERS = ("", "", "", "photos/", "2024 Übung/", "a/b/")
STEMS = (
    "IMG_0001",
    "img_0001",
    "IMG_0002",
    "photo.final",
    "1",
    "2",
    "07",
    "a b",
    "comma, name",
    "naïve",
    "café",
    "=1+1",
)
KINDS = (".jpg", ".JPG", ".jpeg", ".png", ".PNG", ".tif", ".webp", ".gif", ".bmp")
OTHERS = (".heic", ".HEIC", ".avif", ".cr2", ".NEF", ".dng", ".mov", ".mp4", "", ".txt", ".csv", ".db", ".json", ".")
CLASSES = (
    "Butterfly",
    "buterfly",
    "butterflies",
    "butterfly ",
    "moth",
    "Moth",
    "1",
    "2",
    "-1",
    "",
    "n/a",
    "é",
    "é",
    "a" * 300,
)
HEADINGS: tuple[tuple[str, ...], ...] = (
    (),
    ("file", "label"),
    ("image", "species", "observer"),
    ("Filename", "Class Name"),
    ("id", "date", "breed"),
    ("label", "file"),
    ("Bild", "Tier"),
    ("", ""),
    LABEL_COLUMNS,
    ("file", "split", "given", "refined", "triage"),
)
ENCODINGS = (*("utf-8", "utf-8-sig", "utf-16") * 4, "utf-16-le", "utf-32", "latin-1", "cp1252")
SEPARATORS = (*(",", ";", "\t") * 3, "|", ", ", " ")
PLACES = (*("inside", "inside, by its name", "outside", "not given") * 3, "outside, by its name", "missing", "a folder")
NAMES = (
    "labels.csv",
    "labels.tsv",
    "labels.xlsx",
    "Labels.CSV",
    "my labels.csv",
    "labels",
    "labels.jsonl",
    "labels.xls",
)
CONTENTS = ("picture", "picture", "picture", "picture", "", "text", "half")


class Case(NamedTuple):
    """A folder and its labels file."""

    files: dict[str, str]
    """What is in each file."""
    table: bytes | list[list[Any]]
    """The labels file; rows become a workbook."""
    name: str
    place: str


@cache
def encoded(kind: str, number: int) -> bytes:
    """A small picture as a file of that kind."""
    file = io.BytesIO()
    image = Image.fromarray(picture(number % 2, number, side=6))
    if kind in ("heic", "avif"):
        if f".{kind}" not in readable_suffixes():
            return b"\0\0\0\x18ftypheic"
        if kind == "heic" and heic_is_readable():
            import pillow_heif

            pillow_heif.register_heif_opener()
    names = {"jpg": "JPEG", "jpeg": "JPEG", "tif": "TIFF", "heic": "HEIF"}
    image.save(file, names.get(kind, kind.upper()))
    return file.getvalue()


@st.composite
def spelled(draw: st.DrawFn, file: str) -> str:
    """A file's name as a person may write it."""
    changes: list[Callable[[str], str]] = [
        lambda name: name,
        lambda name: name.rpartition(".")[0] or name,
        str.upper,
        str.lower,
        lambda name: f"photos/{name}",
        lambda name: "C:\\Users\\me\\" + name.replace("/", "\\"),
        lambda name: f"./{name}",
        lambda name: name.rpartition("/")[2],
        lambda name: f" {name} ",
        lambda name: f"../{name}",
        lambda name: f"{name}.jpg",
    ]
    return draw(st.sampled_from(changes))(file)


@st.composite
def tables(draw: st.DrawFn, files: list[str]) -> list[list[str]]:
    """Rows of a labels file, most of them sensible."""
    heading = draw(st.sampled_from(HEADINGS))
    width = len(heading) or 2
    names = st.sampled_from(files or ["a.jpg"]).flatmap(spelled) | st.text(max_size=6)
    rows = []
    for _ in range(draw(st.integers(0, 8))):
        label = draw(st.sampled_from(CLASSES) | st.text(max_size=4))
        row = [draw(names), label, *draw(st.lists(st.sampled_from(("accept", "review", "1", "moth", "")), max_size=9))]
        if draw(st.integers(0, 9)):
            row = (row + [""] * width)[:width]
        rows.append(row[::-1] if heading == ("label", "file") else row)
    return ([list(heading)] if heading else []) + rows


def as_text(rows: list[list[str]], separator: str, end: str, encoding: str) -> bytes:
    def cell(text: str) -> str:
        return (
            '"' + text.replace('"', '""') + '"' if any(mark in text for mark in (separator, '"', "\n", "\r")) else text
        )

    text = end.join(separator.join(map(cell, row)) for row in rows)
    return text.encode(encoding, "replace")


def as_log(rows: list[list[str]]) -> bytes:
    """Lines like those of the labelling page."""
    lines = [
        {
            "key": str(number), "at": "2026-01-01T00:00:00Z", "who": "me", "do": "label", "class_id": row[-1],
            "name": row[-1], "images": [{"path": row[0], "sha256": "0" * 64, "size": number}],
        }
        for number, row in enumerate(rows) if row
    ]  # fmt: skip
    return "\n".join(map(json.dumps, lines)).encode()


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """A folder with a labels file."""
    place = st.builds(
        lambda folder, stem, kind: folder + stem + kind,
        st.sampled_from(FOLDERS),
        st.sampled_from(STEMS),
        st.sampled_from(KINDS * 2 + OTHERS),
    )
    odd = st.text(st.characters(codec="utf-8", exclude_characters="\0/"), min_size=1, max_size=5)
    files = draw(st.dictionaries(place | odd, st.sampled_from(CONTENTS), max_size=9))
    good = bool(draw(st.integers(0, 4)))
    if good:
        files |= dict.fromkeys(("IMG_0001.jpg", "IMG_0002.jpg", "7.png"), "picture")
    rows = draw(tables(list(files)))
    if good and rows:
        width = len(rows[0])
        more = (["IMG_0001.jpg", "moth"], ["7.png", "Butterfly"])
        rows += [
            ([*row] + [""] * width)[: max(2, width)] if rows[0] != ["label", "file"] else row[::-1] for row in more
        ]
    name = draw(st.sampled_from(NAMES))
    content: bytes | list[list[Any]]
    if name.endswith("jsonl"):
        content = as_log(rows)
    elif name.endswith("xlsx") and draw(st.integers(0, 5)):
        content = rows
    else:
        kind = (draw(st.sampled_from(options)) for options in (SEPARATORS, ("\n", "\r\n", "\r"), ENCODINGS))
        content = as_text(rows, *kind)
    if isinstance(content, bytes) and content and not draw(st.integers(0, 5)):
        cut = draw(st.integers(0, len(content)))
        content = content[:cut] + draw(st.sampled_from((b"", b"\0", b'"', b"\xff", b"\n\n,"))) + content[cut + 1 :]
    return Case(files, content, name, draw(st.sampled_from(PLACES)))


CASES: SearchStrategy[Case] = cases()


def write(case: Case, folder: Path, workbook: Callable[[list[list[Any]]], bytes]) -> tuple[Path, Path | None]:
    """Make the folder; returns it and what `--labels` is given."""
    root = folder / "photos"
    root.mkdir()
    for number, (name, content) in enumerate(case.files.items()):
        kind = name.rpartition(".")[2].lower()
        if content in ("picture", "half"):
            good = encoded(kind if kind in ("heic", "avif", "tif", "webp", "gif", "bmp", "png") else "jpeg", number % 4)
            data = good if content == "picture" else good[: len(good) // 2]
        else:
            data = content.encode()
        with contextlib.suppress(OSError):  # a name that the file system does not take, or a folder of that name
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_bytes(data)
    home = root if case.place.startswith("inside") or case.place == "not given" else folder
    file = home / case.name
    with contextlib.suppress(OSError):
        if case.place == "a folder":
            file.mkdir()
        elif case.place != "missing":
            file.write_bytes(case.table if isinstance(case.table, bytes) else workbook(case.table))
    if case.place == "not given":
        return root, None
    return root, Path(case.name) if case.place.endswith("by its name") else file


def read(case: Case, folder: Path, workbook: Callable[[list[list[Any]]], bytes]) -> None:
    """Everything that `train` and `data check` do with it before they train, and what they say."""
    root, labels = write(case, folder, workbook)
    settings: dict[str, Any] = {"image_size": 6} | ({} if labels is None else {"labels": labels})
    inputs = find_inputs([str(root)], settings={"data": settings, "network": {"encoder": "wrn-10-1"}})
    config = inputs.config()
    bundle = load_data(config)
    split = make_split(bundle.train)
    content = describe_data(bundle, split, own=config.data.name in OWN)
    json.dumps(content)
    assert bundle.files is not None
    used = bundle.files.used
    assert used == len(bundle.train) + (0 if bundle.test is None else len(bundle.test))
    assert used + len(bundle.files.skipped) == len(every_file(root))
    screen = Console(file=io.TextIOWrapper(io.BytesIO(), encoding="utf-8"), width=80, force_terminal=True)
    for line in file_lines(bundle.files):
        say(screen, line)
    checked = {"ok": True, "errors": [], "recognised": inputs.said, "files": {"found": 0, "used": used, "skipped": 0}}
    show(content | checked, screen, verbose=True)
