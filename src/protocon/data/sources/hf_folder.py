"""Image folders as Hugging Face writes them: metadata.csv or metadata.jsonl beside the images.

https://huggingface.co/docs/datasets/image_dataset: a column `file_name`, relative to the metadata file, and `label`.
"""

import json
import posixpath

import numpy as np

from protocon.data.files.decode_all import Members
from protocon.data.files.file_report import SkippedFile
from protocon.data.files.names import shown
from protocon.data.files.places import need_root, open_store, wrong_place
from protocon.data.files.stores import FileEntry, FileStore, is_hidden
from protocon.data.imageset import DataBundle
from protocon.data.labels.file_finder import FileFinder
from protocon.data.labels.label_file import LabelRow, LabelTable, parse_label_table
from protocon.data.labels.label_match import match_labels
from protocon.data.source_options import FILE_OPTIONS, SourceOptions
from protocon.data.sources.listing import FileListing, make_bundle, sort_out
from protocon.errors import DataError

METADATA_FILES = ("metadata.csv", "metadata.jsonl")
TEST_NAMES = ("test", "testing", "eval", "evaluation", "validation", "valid", "val", "dev")
"""Names of splits to test on, the first that is there; any other image is for training."""
_EXPECTED = (
    "images with metadata.csv or metadata.jsonl (file_name and label) beside them, directly or in train/ and test/"
)


def metadata(options: SourceOptions) -> DataBundle:
    """Images with metadata files, in one folder or in train/ and test/ (or validation/); also as a zip.

    An image without a row, or whose label is empty or null, is an unlabelled training image.
    """
    options.accept_only("metadata", *FILE_OPTIONS, "test_fraction", "test_seed")
    root = need_root(options, "metadata", _EXPECTED)
    store = open_store(root, "metadata", _EXPECTED)
    entries = store.files()
    tables = [e.path for e in entries if posixpath.basename(e.path) in METADATA_FILES and not is_hidden(e.path)]
    if not tables:
        raise wrong_place(root, "metadata", _EXPECTED)
    images, skipped = sort_out(entries)
    skipped = [SkippedFile(s.path, "the labels file") if s.path in tables else s for s in skipped]
    table = _joined(store, tables)
    names = [entry.path for entry in images]
    matched = match_labels(
        "metadata", table, names, skipped=skipped, finder=FileFinder(names, root=root, tolerant=False)
    )
    train, test = _divide(images, matched.labels, skipped)
    if not train.files:
        raise DataError(f"{root}: every image is in a test folder; put those to learn from into train/.")
    listing = FileListing("metadata", store, matched.class_names, train, test, skipped, matched.warnings, matched.notes)
    return make_bundle(listing, options, own=True)


def has_labels(store: FileStore, path: str) -> bool:
    """Whether a metadata file has a column of labels."""
    with store.open(path) as file:
        head = file.read(65_536).decode("utf-8-sig", "replace")
    return '"label"' in head if path.endswith(".jsonl") else "label" in head.partition("\n")[0].lower()


def _joined(store: FileStore, tables: list[str]) -> LabelTable:
    """Rows of all metadata files, their names relative to the store."""
    rows: list[LabelRow] = []
    problems: list[str] = []
    for path in tables:
        with store.open(path) as file:
            content = file.read()
        read = _parse_json_lines if path.endswith(".jsonl") else parse_label_table
        table = read(content, store.full_name(path))
        folder = posixpath.dirname(path)
        rows += [row._replace(file=posixpath.join(folder, row.file), source=shown(path)) for row in table.rows]
        problems += [f"{shown(path)}: {problem}" for problem in table.problems]
    return LabelTable(rows, problems)


def _parse_json_lines(content: bytes, name: str) -> LabelTable:
    rows: list[LabelRow] = []
    problems: list[str] = []
    try:
        lines = content.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise DataError(f"{name} is not UTF-8 text ({error.reason}). Save it as UTF-8.") from error
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            row = None
        file, label = (row.get("file_name"), row.get("label")) if isinstance(row, dict) else (None, None)
        if not isinstance(file, str) or not file or isinstance(label, dict | list | float):
            problems.append(
                f'line {number}: expected {{"file_name": text, "label": text or number}}, got {line[:80]!r}'
            )
        else:
            rows.append(LabelRow(number, file, "" if label is None else str(label).strip()))
    return LabelTable(rows, problems)


def _divide(images: list[FileEntry], labels: np.ndarray, skipped: list[SkippedFile]) -> tuple[Members, Members | None]:
    """Training and test images by the folder they lie in."""
    tops = np.array([entry.path.partition("/")[0] if "/" in entry.path else "" for entry in images], dtype=object)
    found = [name for name in TEST_NAMES if (tops == name).any()]
    everything = Members(images, labels)
    train = everything.take(np.flatnonzero(~np.isin(tops, found)))
    if not found:
        return train, None
    for name in found[1:]:
        skipped.extend(
            SkippedFile(images[int(i)].path, f"{found[0]}/ is tested on instead") for i in np.flatnonzero(tops == name)
        )
    inside = tops == found[0]
    skipped.extend(
        SkippedFile(images[int(i)].path, "test image without a label") for i in np.flatnonzero(inside & (labels < 0))
    )
    test = everything.take(np.flatnonzero(inside & (labels >= 0)))
    return train, test if test.files else None
