"""A folder of one's own images with a few labels in a CSV file."""

from pathlib import Path

from protocon.data.files.decode_all import Members
from protocon.data.files.file_report import SkippedFile
from protocon.data.files.near_path import near_path
from protocon.data.files.places import need_root, open_store, wrong_place
from protocon.data.files.stores import FileStore
from protocon.data.imageset import DataBundle
from protocon.data.labels.file_finder import FileFinder
from protocon.data.labels.label_file import LabelTable, parse_label_table, read_label_table
from protocon.data.labels.label_match import match_labels
from protocon.data.source_options import FILE_OPTIONS, SourceOptions
from protocon.data.sources.listing import FileListing, make_bundle, sort_out
from protocon.errors import DataError

LABELS_FILE = "labels.csv"
LABELS_FILES = (LABELS_FILE, "labels.tsv", "labels.xlsx")
"""Where labels are looked for without `--labels`, the first that is there."""
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
    names = [entry.path for entry in images]
    finder = FileFinder(names, root=root)
    table, source, own = find_labels(root, store, options, finder)
    skipped = [SkippedFile(s.path, "the labels file") if s.path == own else s for s in skipped]
    matched = match_labels(source, table, names, skipped=skipped, finder=finder)
    members = Members(images, matched.labels)
    listing = FileListing(
        "folder", store, matched.class_names, members, None, skipped, matched.warnings, matched.notes, matched.listed
    )
    return make_bundle(listing, options, own=True)


def has_labels_file(root: Path, store: FileStore) -> bool:
    """Whether there is a labels.csv (or .tsv, .xlsx) at the top of the folder or archive."""
    if root.is_dir():
        return any((root / name).is_file() for name in LABELS_FILES)
    return any(entry.path in LABELS_FILES for entry in store.files())


def find_labels(
    root: Path, store: FileStore, options: SourceOptions, finder: FileFinder
) -> tuple[LabelTable, str, str | None]:
    """The labels, what messages call their file, and its path within the store if it lies there.

    A file that was asked for and is not where it should be may lie in the folder itself.

    Args:
        root: the folder of images.
        store: its files.
        options: as the user gave them; `labels` names the file.
        finder: matches names in a label file to files.
    """
    given = options.labels
    if given is not None and given.is_file():
        inner = given.resolve().is_relative_to(root.resolve())
        own = given.resolve().relative_to(root.resolve()).as_posix() if inner else None
        return read_label_table(given, names_image=finder.names_image), given.name, own
    if given is not None and given.is_dir():
        raise DataError(f"--labels {given} is a folder; expected a table with rows `file,label`, such as labels.csv.")
    wanted = LABELS_FILES if given is None else (given.as_posix(),)
    files = {entry.path for entry in store.files()}
    inside = next((name for name in wanted if name in files), None)
    if inside is None:
        also = "" if given is None or given.is_absolute() else f", neither here nor in {root}"
        if given is not None and (guess := near_path(given) or near_path(root / given)):
            raise DataError(f"Labels file {given} does not exist{also}; did you mean {guess}?")
        raise DataError(f"Labels file {given or root / LABELS_FILE} does not exist{also}. Expected: {_EXPECTED}.")
    with store.open(inside) as file:
        content = file.read()
    table = parse_label_table(content, store.full_name(inside), names_image=finder.names_image)
    return table, inside, inside
