"""A folder of one's own images with a few labels in a CSV file."""

from pathlib import Path

from protocon.data.files.decode_all import Members
from protocon.data.files.file_report import SkippedFile
from protocon.data.files.places import need_root, open_store, wrong_place
from protocon.data.files.stores import FileStore
from protocon.data.imageset import DataBundle
from protocon.data.labels.label_file import LabelTable, parse_label_table, read_label_table
from protocon.data.labels.label_match import match_labels
from protocon.data.source_options import FILE_OPTIONS, SourceOptions
from protocon.data.sources.listing import FileListing, make_bundle, sort_out
from protocon.errors import DataError

LABELS_FILE = "labels.csv"
_EXPECTED = "image files, in any folders, and labels.csv with rows `file,label` for the labelled ones"


def folder(options: SourceOptions) -> DataBundle:
    """Images anywhere below root (a folder or a zip); labels.csv (or the option `labels`) names the class of some.

    Files are named relative to root. Every image that has no row, or an empty label or −1, or rows that contradict
    each other, is unlabelled.
    """
    options.accept_only("folder", *FILE_OPTIONS, "labels", "test_fraction", "test_seed")
    root = need_root(options, "folder", _EXPECTED)
    store = open_store(root, "folder", _EXPECTED)
    images, skipped = sort_out(store.files())
    if not images:
        raise wrong_place(root, "folder", _EXPECTED)
    table, source, own = find_labels(root, store, options)
    skipped = [SkippedFile(s.path, "the labels file") if s.path == own else s for s in skipped]
    matched = match_labels(
        source,
        table,
        [entry.path for entry in images],
        skipped=skipped,
        root=root,
    )
    members = Members(images, matched.labels)
    listing = FileListing("folder", store, matched.class_names, members, None, skipped, matched.warnings)
    return make_bundle(listing, options, own=True)


def has_labels_file(root: Path, store: FileStore) -> bool:
    """Whether there is a labels.csv at the top of the folder or archive."""
    return (root / LABELS_FILE).is_file() if root.is_dir() else any(e.path == LABELS_FILE for e in store.files())


def find_labels(root: Path, store: FileStore, options: SourceOptions) -> tuple[LabelTable, str, str | None]:
    """The labels, what messages call their file, and its path within the store if it lies there."""
    if options.labels is None and not root.is_dir():
        inside = [entry.path for entry in store.files() if entry.path == LABELS_FILE]
        if not inside:
            raise DataError(f"{root} has no {LABELS_FILE}. Expected in it: {_EXPECTED}.")
        with store.open(LABELS_FILE) as file:
            return parse_label_table(file.read(), store.full_name(LABELS_FILE)), LABELS_FILE, LABELS_FILE
    path = options.labels or root / LABELS_FILE
    if not path.is_file():
        raise DataError(f"Labels file {path} does not exist. Expected in {root}: {_EXPECTED}.")
    inner = path.resolve().is_relative_to(root.resolve())
    own = path.resolve().relative_to(root.resolve()).as_posix() if inner else None
    return read_label_table(path), path.name, own
