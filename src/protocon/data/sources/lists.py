"""Benchmarks that come as lists of files: Mini-ImageNet and DomainNet."""

from pathlib import Path, PurePosixPath

import numpy as np

from protocon.data.files.decode_all import Members
from protocon.data.files.file_report import SkippedFile
from protocon.data.files.places import need_root, open_store, some, wrong_place
from protocon.data.files.stores import FileEntry, FolderStore
from protocon.data.imageset import DataBundle
from protocon.data.labels.label_file import read_label_rows
from protocon.data.source_options import FILE_OPTIONS, SourceOptions
from protocon.data.sources.class_folders import list_class_folders
from protocon.data.sources.listing import FileListing, make_bundle
from protocon.errors import ConfigError, DataError

DOMAINS = ("clipart", "infograph", "painting", "quickdraw", "real", "sketch")

_MINI_EXPECTED = (
    "train.csv and test.csv with rows `filename,label` beside images/, or train/<class>/* and test/<class>/* "
    "(500 training and 100 test images of each of 100 classes)"
)
_FEW_SHOT = (
    "This is the few-shot split, whose training and test classes differ. Semi-supervised learning needs the "
    "split with the same 100 classes in both (Iscen et al., CVPR 2019: 500 + 100 images per class)."
)
_DOMAIN_GET = "Get the images and the lists (cleaned version) from https://ai.bu.edu/M3SDA/."


def mini_imagenet(options: SourceOptions) -> DataBundle:
    """100 classes of ImageNet at 84×84, as lists or as class folders (also zipped)."""
    options.accept_only("mini-imagenet", *FILE_OPTIONS)
    root = need_root(options, "mini-imagenet", _MINI_EXPECTED)
    if (root / "train.csv").is_file() and (root / "test.csv").is_file():
        return make_bundle(_from_csv(root), options, default_size=84)
    store = open_store(root, "mini-imagenet", _MINI_EXPECTED)
    if not {"train", "test"} <= set(store.folders()):
        raise wrong_place(root, "mini-imagenet", _MINI_EXPECTED)
    if not set(store.folders("train")) & set(store.folders("test")):
        raise DataError(f"{root}: {_FEW_SHOT}")
    return make_bundle(list_class_folders("mini-imagenet", store), options, default_size=84)


def _from_csv(root: Path) -> FileListing:
    store = FolderStore(root)
    rows = {part: read_label_rows(root / f"{part}.csv") for part in ("train", "test")}
    classes = {part: {row.label for row in rows[part]} for part in rows}
    if not classes["train"] & classes["test"]:
        raise DataError(f"{root}: {_FEW_SHOT}")
    if classes["test"] - classes["train"] or "" in classes["train"]:
        strange = sorted(classes["test"] - classes["train"]) or ["a row without a label"]
        raise DataError(f"{root}: test.csv has classes that train.csv has not: {some(strange)}.")
    class_names = tuple(sorted(classes["train"]))
    numbers = {class_name: number for number, class_name in enumerate(class_names)}

    def members(part: str) -> Members:
        files: list[FileEntry] = []
        missing: list[str] = []
        for row in rows[part]:
            places = (f"images/{row.file}", f"images/{row.label}/{row.file}", row.file)
            entry = next((found for place in places if (found := store.entry(place))), None)
            if entry is None:
                missing.append(row.file)
            else:
                files.append(entry)
        _refuse_missing(root / f"{part}.csv", missing, root / "images")
        return Members(files, np.array([numbers[row.label] for row in rows[part]], dtype=np.int64))

    skipped = [SkippedFile(name, "list not used") for name in ("val.csv",) if (root / name).is_file()]
    return FileListing("mini-imagenet", store, class_names, members("train"), members("test"), skipped)


def domainnet(options: SourceOptions) -> DataBundle:
    """One domain of DomainNet at 224×224: <domain>_train.txt and <domain>_test.txt, lines `path label`.

    Class names are the images' folders. A class without training images (painting has one) is left out;
    its test images are reported as skipped.
    """
    options.accept_only("domainnet", *FILE_OPTIONS, "domain")
    if options.domain not in DOMAINS:
        raise ConfigError(f"Dataset 'domainnet': domain is {options.domain!r}; choose {', '.join(DOMAINS)}.")
    domain = options.domain
    expected = f"{domain}_train.txt and {domain}_test.txt with lines `path label`, and the images in {domain}/"
    root = need_root(options, "domainnet", expected)
    if not root.is_dir():
        raise wrong_place(root, "domainnet", expected, _DOMAIN_GET)
    lists = {}
    for part in ("train", "test"):
        places = [root / sub / f"{domain}_{part}.txt" for sub in ("", domain, "splits", "image_list")]
        found = [place for place in places if place.is_file()]
        if not found:
            raise wrong_place(root, "domainnet", expected, _DOMAIN_GET)
        lists[part] = found[0]
    return make_bundle(_from_domain_lists(root, lists["train"], lists["test"]), options, default_size=224)


def _from_domain_lists(root: Path, train_list: Path, test_list: Path) -> FileListing:
    store = FolderStore(root)
    train, test = _read_domain_list(train_list), _read_domain_list(test_list)
    names: dict[int, str] = {}
    for path, number in train:
        name = PurePosixPath(path).parent.name
        if names.setdefault(number, name) != name:
            raise DataError(f"{train_list}: label {number} stands for both {names[number]!r} and {name!r}.")
    numbers = sorted(names)
    places = {number: place for place, number in enumerate(numbers)}
    skipped = [
        SkippedFile(path, "test image of a class without training images")
        for path, number in test
        if number not in places
    ]

    def members(source: Path, rows: list[tuple[str, int]]) -> Members:
        entries = [store.entry(path) for path, _ in rows]
        _refuse_missing(source, [path for (path, _), e in zip(rows, entries, strict=True) if e is None], root)
        labels = np.array([places[number] for _, number in rows], dtype=np.int64)
        return Members([entry for entry in entries if entry], labels)

    used = [(path, number) for path, number in test if number in places]
    class_names = tuple(names[number] for number in numbers)
    return FileListing("domainnet", store, class_names, members(train_list, train), members(test_list, used), skipped)


def _read_domain_list(path: Path) -> list[tuple[str, int]]:
    rows: list[tuple[str, int]] = []
    for number, line in enumerate(path.read_text(encoding="utf-8-sig").splitlines(), start=1):
        if not line.strip():
            continue
        file, _, label = line.strip().rpartition(" ")
        if not file or not label.isdecimal():
            raise DataError(f"{path}, line {number}: expected `path label`, got {line!r}.")
        rows.append((file.strip(), int(label)))
    if not rows:
        raise DataError(f"{path} is empty. {_DOMAIN_GET}")
    return rows


def _refuse_missing(source: Path, missing: list[str], folder: Path) -> None:
    if missing:
        raise DataError(
            f"{source} lists {len(missing):,} files that are not in {folder}: {some(missing, 3)}. "
            "Unpack the images there."
        )
