"""Small data in every layout that the package reads: two classes, reddish and bluish noise."""

import importlib
import pickle
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
from PIL import Image

TRAIN, TEST = 12, 4
"""Images a class."""


def picture(label: int, number: int, side: int = 16) -> np.ndarray:
    """Class 0 is reddish, class 1 bluish; no two are the same."""
    noise = np.random.default_rng(1000 * label + number).integers(0, 60, (side, side, 3))
    noise[..., 0 if label == 0 else 2] += 150
    return noise.astype(np.uint8)


def pictures(count: int, side: int, first: int = 0, classes: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """`count` pictures of each class (N, H, W, 3) and their labels; further classes look like the first two."""
    labels = np.repeat(np.arange(classes), count)
    images = [picture(int(c) % 2, first + i + 100 * int(c), side) for c in range(classes) for i in range(count)]
    return np.stack(images), labels


def save_class(folder: Path, label: int, count: int, *, first: int = 0, suffix: str = ".png") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        Image.fromarray(picture(label, first + number)).save(folder / f"{first + number:03}{suffix}")


def digits(_root: Path) -> list[str]:
    return ["data.labels_per_class=2"]


def fashion_mnist(root: Path) -> list[str]:
    for part, count, first in (("train", TRAIN, 0), ("t10k", TEST, 50)):
        images, labels = pictures(count, 28, first, classes=10)
        header = struct.pack(">4B3I", 0, 0, 8, 3, len(images), 28, 28)
        (root / f"{part}-images-idx3-ubyte").write_bytes(header + images[..., 0].tobytes())
        (root / f"{part}-labels-idx1-ubyte").write_bytes(
            struct.pack(">4BI", 0, 0, 8, 1, len(labels)) + bytes(labels.tolist())
        )
    return ["data.labels_per_class=2"]


def _cifar(
    root: Path, folder: str, names: dict[str, tuple[int, int]], key: bytes, meta: tuple[str, bytes, int]
) -> None:
    (root / folder).mkdir()
    file, entry, classes = meta
    for name, (count, first) in names.items():
        images, labels = pictures(count, 32, first, classes=classes)
        flat = images.transpose(0, 3, 1, 2).reshape(len(images), -1)
        (root / folder / name).write_bytes(pickle.dumps({b"data": flat, key: labels.tolist()}, 2))
    (root / folder / file).write_bytes(pickle.dumps({entry: [f"c{i:02}".encode() for i in range(classes)]}, 2))


def cifar10(root: Path) -> list[str]:
    batches = {f"data_batch_{i}": (2, 10 * i) for i in range(1, 6)} | {"test_batch": (1, 90)}
    _cifar(root, "cifar-10-batches-py", batches, b"labels", ("batches.meta", b"label_names", 10))
    return ["data.labels_per_class=1"]


def cifar100(root: Path) -> list[str]:
    batches = {"train": (4, 0), "test": (1, 50)}
    _cifar(root, "cifar-100-python", batches, b"fine_labels", ("meta", b"fine_label_names", 100))
    return ["data.labels_per_class=1", "method.neighbours=3"]


def imagefolder(root: Path) -> list[str]:
    for label, name in enumerate(("red", "blue")):
        save_class(root / "train" / name, label, TRAIN)
        save_class(root / "test" / name, label, TEST, first=50)
    save_class(root / "train" / "unlabelled", 0, 5, first=80)
    return ["data.labels_per_class=2"]


def folder(root: Path) -> list[str]:
    save_class(root, 0, TRAIN)
    save_class(root, 1, TRAIN, first=TRAIN)
    rows = ["file,label"] + [f"{i:03}.png,red" for i in range(3)]
    rows += [f"{TRAIN + i:03}.png,blue" for i in range(3)]
    (root / "labels.csv").write_text("\n".join(rows))
    return []


def metadata(root: Path) -> list[str]:
    for part, count, first in (("train", TRAIN, 0), ("test", TEST, 50)):
        rows = ["file_name,label"]
        for label, name in enumerate(("red", "blue")):
            save_class(root / part, label, count, first=first + 200 * label)
            rows += [f"{first + 200 * label + i:03}.png,{name}" for i in range(count)]
        (root / part / "metadata.csv").write_text("\n".join(rows))
    return ["data.labels_per_class=2"]


def hugging_face(root: Path) -> list[str]:
    datasets = importlib.import_module("datasets")
    parts = {}
    for part, count, first in (("train", TRAIN, 0), ("test", TEST, 50)):
        images, labels = pictures(count, 16, first)
        columns = {"image": [Image.fromarray(image) for image in images], "label": labels.tolist()}
        features = datasets.Features({"image": datasets.Image(), "label": datasets.ClassLabel(names=["red", "blue"])})
        parts[part] = datasets.Dataset.from_dict(columns, features=features)
    datasets.DatasetDict(parts).save_to_disk(root / "saved")
    return [f"data.root={root / 'saved'}", "data.labels_per_class=2"]


def image_arrays(root: Path) -> list[str]:
    images, labels = pictures(TRAIN, 16)
    test, test_labels = pictures(TEST, 16, first=50)
    np.savez(root / "set.npz", x=images, y=labels, x_test=test, y_test=test_labels)
    return [f"data.root={root / 'set.npz'}", "data.labels_per_class=2"]


def embeddings(root: Path) -> list[str]:
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1], 20)
    features = rng.normal(size=(40, 10)) + 3 * labels[:, None]
    known = np.where(np.arange(40) % 20 < 3, labels, -1)
    np.savez(root / "set.npz", x=features.astype(np.float32), y=known, x_test=features, y_test=labels)
    return [f"data.root={root / 'set.npz'}"]


def mini_imagenet(root: Path) -> list[str]:
    for part, count, first in (("train", TRAIN, 0), ("test", TEST, 50)):
        rows = ["filename,label"]
        for label, name in enumerate(("n01", "n02")):
            save_class(root / "images", label, count, first=first + 200 * label)
            rows += [f"{first + 200 * label + i:03}.png,{name}" for i in range(count)]
        (root / f"{part}.csv").write_text("\n".join(rows))
    return ["data.labels_per_class=2"]


def domainnet(root: Path) -> list[str]:
    for domain in ("clipart", "sketch"):
        for part, count, first in (("train", TRAIN, 0), ("test", TEST, 50)):
            lines = []
            for label, name in enumerate(("apple", "zebra")):
                save_class(root / domain / name, label, count, first=first)
                lines += [f"{domain}/{name}/{first + i:03}.png {label}" for i in range(count)]
            (root / f"{domain}_{part}.txt").write_text("\n".join(lines))
    return ["data.domain=sketch", "data.labels_per_class=2"]


def imagenet(root: Path) -> list[str]:
    for part, count, first in (("train", TRAIN, 0), ("val", TEST, 50)):
        for label, name in enumerate(("n01440764", "n01443537")):
            save_class(root / part / name, label, count, first=first, suffix=".JPEG")
    return ["data.storage=stream", "data.workers=1", "data.labels_per_class=2"]


LAYOUTS: dict[str, tuple[str, Callable[[Path], list[str]]]] = {
    "digits": ("digits", digits),
    "fashion-mnist": ("fashion-mnist", fashion_mnist),
    "cifar10": ("cifar10", cifar10),
    "cifar100": ("cifar100", cifar100),
    "imagefolder": ("imagefolder", imagefolder),
    "folder": ("folder", folder),
    "images": ("images", folder),
    "metadata": ("metadata", metadata),
    "hugging face": ("hf", hugging_face),
    "image arrays": ("arrays", image_arrays),
    "embeddings": ("arrays", embeddings),
    "mini-imagenet": ("mini-imagenet", mini_imagenet),
    "domainnet": ("domainnet", domainnet),
    "imagenet": ("imagenet", imagenet),
}
"""Name of the layout -> name in DATASETS, and a function that writes it and returns settings."""
