"""Which source reads a folder or file that a user names: guessed from what is there, and said aloud."""

import posixpath
from dataclasses import dataclass
from pathlib import Path

from protocon.data.files.names import shown
from protocon.data.files.places import describe_place, open_store
from protocon.data.files.stores import FileEntry, FileStore, is_hidden
from protocon.data.sources.class_folders import is_unlabelled_folder
from protocon.data.sources.hf_folder import METADATA_FILES, has_labels
from protocon.data.sources.labelled_folder import LABELS_FILES
from protocon.data.sources.listing import sort_out
from protocon.errors import DataError

_ARRAYS = (".npz", ".npy")
_BENCHMARKS = {
    "cifar-10-batches-py": "cifar10",
    "cifar-10-batches-bin": "cifar10",
    "cifar-100-python": "cifar100",
    "cifar-100-binary": "cifar100",
}
_LAYOUTS = (
    "a labels.csv with rows `file,label` (or --labels FILE), a folder of images for each class, "
    "metadata.csv or metadata.jsonl with file_name and label, or an .npz file of arrays"
)


@dataclass(frozen=True)
class Recognised:
    """A source by its name in DATASETS, its root, and why it is this one."""

    name: str
    root: Path
    reason: str

    def said(self) -> str:
        """A line for the user."""
        return f"{shown(str(self.root))}: read as {self.name} ({self.reason})"


def recognise(root: Path, labels: Path | None = None, *, needs_labels: bool = True) -> Recognised:
    """Find out how a folder or file is laid out.

    Args:
        root: what the user named; it exists.
        labels: a labels file that was given with it.
        needs_labels: refuse images of which nothing says the class of any.
    """
    if root.is_file():
        return _file(root, labels, needs_labels)
    if not root.is_dir():
        raise DataError(f"{root} does not exist. Expected a folder of images, a zip of one, or an .npz file.")
    return _folder(root, labels, needs_labels)


def _file(root: Path, labels: Path | None, needs_labels: bool) -> Recognised:
    suffix = root.suffix.lower()
    if suffix in _ARRAYS:
        return Recognised("arrays", root, f"an {suffix} file")
    if suffix == ".parquet":
        return Recognised("hf", root, "a Parquet file, as Hugging Face keeps images")
    if suffix == ".zip":
        found = _files(root, open_store(root, "folder", _LAYOUTS), labels, needs_labels)
        if found is None:
            raise DataError(f"{root} has no images. Expected in it: {_LAYOUTS}.")
        return found
    advice = " That is a labels file: name the folder, and give it with --labels." if suffix in (".csv", ".tsv") else ""
    raise DataError(
        f"{root} is a {suffix or 'nameless'} file; expected a folder, .zip, .npz, .npy or .parquet.{advice}"
    )


def _folder(root: Path, labels: Path | None, needs_labels: bool) -> Recognised:
    names = {entry.name for entry in root.iterdir()}
    for folder, benchmark in _BENCHMARKS.items():
        if folder in names:
            return Recognised(benchmark, root, f"there is {folder}/")
    if labels is None and names & {"dataset_dict.json", "dataset_info.json"} and not names & set(LABELS_FILES):
        return Recognised("hf", root, "saved by the package datasets")
    found = _files(root, open_store(root, "folder", _LAYOUTS), labels, needs_labels)
    if found is not None:
        return found
    arrays = sorted(name for name in names if name.lower().endswith(".npz"))
    if len(arrays) == 1:
        return Recognised("arrays", root / arrays[0], f"{arrays[0]} is all that can be read in {root}")
    if any(path.suffix == ".parquet" for path in root.rglob("*.parquet")):
        return Recognised("hf", root, "Parquet files, as Hugging Face keeps images")
    raise DataError(f"{root} has no images. Expected in it: {_LAYOUTS}. Found: {describe_place(root)}.")


def _files(root: Path, store: FileStore, labels: Path | None, needs_labels: bool) -> Recognised | None:
    """The layout of image files; None if there are none."""
    entries = store.files()
    images, _ = sort_out(entries)
    if not images:
        return None
    if labels is not None:
        return Recognised("folder", root, f"labels in {labels.name}")
    names = {entry.path for entry in entries if not is_hidden(entry.path)}
    own = next((name for name in LABELS_FILES if name in names), None)
    if own is not None:
        return Recognised("folder", root, f"there is {own}")
    tables = sorted(name for name in names if posixpath.basename(name) in METADATA_FILES)
    if any(has_labels(store, name) for name in tables):
        return Recognised("metadata", root, f"there is {shown(tables[0])}, as Hugging Face writes it")
    classes = _class_folders(images)
    if len(classes) >= 2:
        shown_classes = ", ".join(shown(name) for name in classes[:4]) + (", …" if len(classes) > 4 else "")
        return Recognised("imagefolder", root, f"{len(classes)} class folders: {shown_classes}")
    if not needs_labels:
        return Recognised("images", root, f"{len(images):,} images without labels")
    raise DataError(
        f"{root} has {len(images):,} images but nothing that says the class of any of them. Expected: {_LAYOUTS}. "
        f"No labels yet? Make some in the browser with `protocon label {root}`, or `protocon pick {root}` lists the "
        "images that are most worth labelling"
    )


def _class_folders(images: list[FileEntry]) -> list[str]:
    """Folders with images that may be classes: in train/ if that has folders, else at the top."""
    parts = [entry.path.split("/") for entry in images]
    inner = {path[1] for path in parts if path[0] == "train" and len(path) > 2}
    names = inner or {path[0] for path in parts if len(path) > 1}
    return sorted(name for name in names if not is_unlabelled_folder(name))
