"""Everything that comes from outside, and inputs that nobody would write on purpose.

A target takes bytes or settings, and must answer with a result or with one of our own errors.
"""

import contextlib
import io
import json
import pickle
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import yaml
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from PIL import Image
from safetensors.torch import save

from protocon.data.files.decode import decode_image, image_dimensions
from protocon.data.imageset import ArrayImages
from protocon.data.labels.label_split import make_split
from protocon.data.labels.split_file import load_split, save_split
from protocon.data.recognise import recognise
from protocon.data.registry import DATASETS
from protocon.data.source_options import SourceOptions
from protocon.data.sources.cifar_pickle import read_batch
from protocon.data.sources.fashion_mnist import read_idx
from protocon.engine.loop.checkpoint import load_checkpoint
from protocon.networks.encoders import build_encoder
from protocon.networks.network import Network
from protocon.networks.weights import read_weights
from protocon.runs.layout import LABEL_COLUMNS, LOCK
from protocon.runs.lock import locked
from protocon.runs.run_folder import RunFolder
from protocon.runs.trained import load_run
from protocon.settings.config import build_config, known_keys, validate
from protocon.settings.recipe import parse_yaml, recipe_names, recipe_text
from tests.engine.layouts import picture
from tests.fuzz import user_folders


@dataclass(frozen=True)
class Target:
    """A way in."""

    inputs: SearchStrategy[Any]
    run: Callable[[Any, Path], None]
    """Takes an input and a folder of its own."""
    share: int
    """How many of a hundred inputs go here."""


SPLICES = st.sampled_from(
    (b"", b"\x00", b"\xff" * 4, b"\x7f\xff\xff\xff", b"\x80\x00\x00\x00", b"../" * 9, b"\xef\xbb\xbf", b'"', b"\n" * 3)
)


@st.composite
def mutated(draw: st.DrawFn, seeds: list[bytes], changes: int = 6) -> bytes:
    """Valid content with bytes replaced, put in, taken out, repeated, or cut off."""
    content = bytearray(draw(st.sampled_from(seeds)))
    for _ in range(draw(st.integers(0, changes))):
        place = draw(st.integers(0, max(0, len(content) - 1)))
        length = draw(st.sampled_from((0, 1, 1, 1, 2, 4, 16, 400)))
        kind = draw(st.integers(0, 5))
        if kind == 0:
            content[place : place + length] = draw(st.binary(min_size=length, max_size=length))
        elif kind == 1:
            content[place:place] = draw(SPLICES)
        elif kind == 2:
            content[place : place + length] = draw(SPLICES)
        elif kind == 3:
            content[place:place] = content[place : place + length]
        elif kind == 4 and content:
            content[place] ^= 1 << draw(st.integers(0, 7))
        else:
            del content[place + draw(st.integers(0, 64)) :]
    return bytes(content)


# Settings

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(-3, 300),
    st.floats(),
    st.text(max_size=20),
    st.sampled_from(("auto", "", "none", "../..", "/etc/passwd", "1e999", ".nan", "0x1F", "2001-02-30", "1_0")),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
KEYS = [f"{section}.{name}" for section, names in known_keys("protocon").items() for name in names]
NAMES = st.sampled_from(KEYS + [key.partition(".")[2] for key in KEYS]) | st.text(max_size=12)
BOMB = b"a: &a [x,x,x,x,x,x,x,x,x]\n" + b"".join(
    f"{b}: &{b} [{','.join([f'*{a}'] * 9)}]\n".encode() for a, b in zip("abcdefgh", "bcdefghi", strict=True)
)
DEEP = b"[" * 3000


@st.composite
def yaml_bytes(draw: st.DrawFn) -> bytes:
    if draw(st.booleans()):
        seeds = [recipe_text(name).encode() for name in recipe_names()] + [BOMB, DEEP, b"data: &a {name: *a}"]
        return draw(mutated(seeds))
    sections = st.sampled_from(("data", "views", "network", "method", "optim", "run", "method_name", "extends", "x"))
    inner = st.dictionaries(st.sampled_from([key.partition(".")[2] for key in KEYS]) | st.text(max_size=6), VALUES)
    content = draw(st.dictionaries(sections, inner | VALUES, max_size=4))
    return yaml.safe_dump(content).encode("utf-8", "surrogatepass")


def read_yaml(content: bytes, folder: Path) -> None:
    file = folder / "config.yaml"
    file.write_bytes(content)
    build_config(recipe=str(file))
    validate(parse_yaml(content.decode("utf-8", "replace"), "text"))


def override(texts: list[str], _folder: Path) -> None:
    build_config(overrides=texts)


OVERRIDES = st.lists(
    st.one_of(
        st.builds(lambda key, value: f"{key}={value}", NAMES, VALUES),
        st.builds(lambda key, value: f"{key}={value}", NAMES, st.text(max_size=20)),
        st.text(max_size=20),
        st.sampled_from(("alpha=0.5", "epochs=3", "optim.lr=0.1", "seed=4", "encoder=wrn-10-1", "flip=true")),
        st.sampled_from(("alpha=" + "[" * 2000, "seed=" + "9" * 5000, "alpha=!!python/object/apply:os.system [ls]")),
    ),
    max_size=3,
)


# Labels

FILES = [f"{place}{number}.png" for number in range(3) for place in ("", "a/", "ä b/")]
ODD_CELLS = ("0", "1.PNG", "photos/0.png", "C:\\x\\1.png", "Cat", "cats", "kat", "accept", "review", ".png", "/", "a/")
CELLS = st.sampled_from(
    (
        *FILES,
        *ODD_CELLS,
        "0.PNG",
        "../0.png",
        "/0.png",
        "a\\0.png",
        "cat",
        "dog",
        "-1",
        "",
        "9" * 5000,
        "²",
        "１",
        '"',
        "=1",
    )
) | st.text(max_size=8)
HEADS: SearchStrategy[list[list[str]]] = st.sampled_from(
    [
        [],
        [["file", "label"]],
        [["image", "species", "observer"]],
        [["Bild", "Tier"]],
        [["a", "b", "c", "d"]],
        [list(LABEL_COLUMNS)],
        [["file", "split", "given", "refined", "triage"]],
        [["label", "label"]],
    ]
)


@st.composite
def label_rows(draw: st.DrawFn) -> list[list[str]]:
    head = draw(HEADS)
    as_wide = draw(st.booleans())
    width = len(head[0]) if head and as_wide else draw(st.integers(1, 4))
    rows = draw(st.lists(st.lists(CELLS, min_size=1, max_size=width), max_size=9))
    good = [[FILES[0], "cat"], [FILES[1], "dog"]] if draw(st.booleans()) else []
    return head + good + rows


@st.composite
def label_bytes(draw: st.DrawFn) -> bytes:
    separator = draw(st.sampled_from((",", ";", "\t")))
    text = draw(st.sampled_from(("\n", "\r\n", "\r"))).join(separator.join(row) for row in draw(label_rows()))
    content = text.encode(draw(st.sampled_from(("utf-8", "utf-8-sig", "utf-16"))), "surrogatepass")
    return draw(mutated([content], changes=2))


WORKBOOK_CELLS = CELLS | st.none() | st.integers() | st.floats() | st.booleans() | st.datetimes()


WORKBOOK_ROWS = st.builds(
    lambda head, rows, good: head + rows + ([[FILES[0], "cat"], [FILES[1], "dog"]] if good else []),
    HEADS,
    st.lists(st.lists(WORKBOOK_CELLS, max_size=4), max_size=6),
    st.booleans(),
)


def workbook(rows: list[list[Any]]) -> bytes:
    import openpyxl

    book = openpyxl.Workbook()
    for row in rows:
        with contextlib.suppress(ValueError, TypeError, openpyxl.utils.exceptions.IllegalCharacterError):
            book.active.append(row)
    content = io.BytesIO()
    book.save(content)
    return content.getvalue()


def read_workbook(content: bytes | list[list[Any]], folder: Path) -> None:
    read_labels(content if isinstance(content, bytes) else workbook(content), folder)


NAMES_OF_FILES = st.builds(
    lambda stem, suffix: stem + suffix,
    st.sampled_from(
        ("a", "b", "B", "sub/a", "red/0", "blue/0", "train/red/1", "unlabelled/x", ".hidden", "labels", "metadata")
    )
    | st.text(st.characters(codec="utf-8", exclude_characters="\0/"), min_size=1, max_size=6),
    st.sampled_from(
        ("", ".png", ".PNG", ".jpg", ".heic", ".avif", ".cr2", ".mov", ".csv", ".jsonl", ".xlsx", ".npz", ".zip")
    ),
)
GOOD_FOLDERS: tuple[dict[str, str], ...] = (
    {},
    dict.fromkeys(("red/0.png", "red/1.png", "blue/0.png", "blue/1.png", "unlabelled/2.png"), "picture"),
    {"a.png": "picture", "b.png": "picture", "c.png": "picture", "labels.csv": "file,label\na.png,x\nb.png,y\n"},
    {"a.png": "picture", "b.png": "picture", "c.png": "picture", "metadata.csv": "file_name,label\na.png,x\nb.png,y\n"},
)
FOLDERS = st.builds(
    lambda good, more: good | more,
    st.sampled_from(GOOD_FOLDERS),
    st.dictionaries(
        NAMES_OF_FILES, st.sampled_from(("picture", "", "text", "file,label\na,x\nb,y\n", "PK")), max_size=8
    ),
)


def read_folder(content: dict[str, str], folder: Path) -> None:
    """Whatever lies there: recognised and loaded, or explained."""
    root = folder / "photos"
    root.mkdir()
    for number, (name, text) in enumerate(content.items()):
        file = root / name
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            if text == "picture":
                with file.open("wb") as out:
                    Image.fromarray(picture(number % 2, number, side=4)).save(out, "PNG")
            else:
                file.write_text(text)
        except OSError:  # a name that the file system does not take, or a folder of the same name
            continue
    found = recognise(root)
    bundle = DATASETS[found.name](SourceOptions(root=found.root))
    make_split(bundle.train)


def read_user_folder(content: user_folders.Case, folder: Path) -> None:
    user_folders.read(content, folder, workbook)


def read_labels(content: bytes, folder: Path) -> None:
    for name in FILES:
        file = folder / name
        if not file.is_file():
            file.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(picture(0, len(name), side=4)).save(file)
    (folder / "labels.csv").write_bytes(content)
    bundle = DATASETS["folder"](SourceOptions(root=folder, image_size=4))
    make_split(bundle.train)


def _split_seeds() -> tuple[ArrayImages, bytes]:
    images = ArrayImages(
        np.arange(9 * 48, dtype=np.uint8).reshape(9, 3, 4, 4), np.arange(9) % 3, ("a", "b", "ç"), name="fuzz"
    )
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "split.json"
        save_split(make_split(images, per_class=1), path)
        return images, path.read_bytes()


SPLIT_IMAGES, SPLIT = _split_seeds()


@st.composite
def split_bytes(draw: st.DrawFn) -> bytes:
    if draw(st.booleans()):
        return draw(mutated([SPLIT, b"[" * 99_999, b'{"a":' * 99_999]))
    content = json.loads(SPLIT)
    for _ in range(draw(st.integers(1, 3))):
        key = draw(st.sampled_from(list(content)))
        content[key] = draw(VALUES)
    if isinstance(content["labelled"], list) and content["labelled"] and draw(st.booleans()):
        row = content["labelled"][0]
        if isinstance(row, dict) and row:
            row[draw(st.sampled_from(list(row)))] = draw(VALUES)
    return json.dumps(content).encode()


def read_split(content: bytes, folder: Path) -> None:
    (folder / "split.json").write_bytes(content)
    load_split(folder / "split.json", SPLIT_IMAGES)


# Images

FORMATS = ("PNG", "JPEG", "GIF", "BMP", "WEBP", "TIFF", "PPM", "AVIF")


def _image_seeds() -> list[bytes]:
    seeds = []
    for mode in ("RGB", "L", "P", "RGBA", "1"):
        image = Image.fromarray(picture(1, 3, side=9)).convert(mode)
        for kind in FORMATS:
            file = io.BytesIO()
            try:
                image.save(file, kind)
            except (OSError, ValueError, KeyError):
                continue
            seeds.append(file.getvalue())
    animation = io.BytesIO()
    frame = Image.fromarray(picture(1, 3, side=9))
    frame.save(animation, "GIF", save_all=True, append_images=[frame.transpose(Image.Transpose.ROTATE_90)] * 2)
    turned = io.BytesIO()
    exif = frame.getexif()
    exif[0x0112] = 6
    frame.save(turned, "JPEG", exif=exif, progressive=True)
    return [*seeds, animation.getvalue(), turned.getvalue()]


def read_image(content: bytes, _folder: Path) -> None:
    import warnings

    from protocon.errors import DataError

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Pillow's, about odd files that it can read after all
        for grey in (False, True):
            pixels = decode_image(io.BytesIO(content), size=5, name="fuzz", grey=grey)
            assert pixels.shape == (1 if grey else 3, 5, 5)
        try:
            width, height = image_dimensions(io.BytesIO(content), name="fuzz")
        except DataError:
            return
        assert width > 0
        assert height > 0


# Arrays

DTYPES = ("u1", "i2", "<i8", ">i4", "f2", "f4", "f8", "b1", "c8", "U3", "S2", "M8[s]", "V2", "O")


@st.composite
def array_of(draw: st.DrawFn) -> np.ndarray:
    shape = tuple(draw(st.lists(st.integers(0, 4), max_size=5)))
    dtype = draw(st.sampled_from(DTYPES))
    if dtype == "O":
        return np.array([{"a": 1}, None, "x"][: draw(st.integers(0, 3))], dtype=object)
    count = int(np.prod(shape)) if shape else 1
    size = np.dtype(dtype).itemsize
    raw = draw(st.binary(min_size=count * size, max_size=count * size))
    if dtype == "U3":
        return np.array([draw(st.text(max_size=3)) for _ in range(count)], dtype="U3").reshape(shape)
    return np.frombuffer(raw, dtype=dtype).reshape(shape)


@st.composite
def array_file(draw: st.DrawFn) -> tuple[str, bytes]:
    file = io.BytesIO()
    x = np.arange(6 * 48, dtype=np.uint8).reshape(6, 4, 4, 3)
    usual = {"x": x, "y": np.array([0, 1, 0, 1, -1, -1]), "x_test": x, "y_test": np.arange(6) % 2}
    if draw(st.booleans()):
        names = st.sampled_from(("x", "y", "x_test", "y_test", "class_names", "images", "../x", "ids"))
        content: dict[str, Any] = {**usual, **draw(st.dictionaries(names, array_of(), max_size=3))}
        for name in draw(st.sets(st.sampled_from(("y", "x_test", "y_test")))):
            content.pop(name, None)
        np.savez(file, **content)
    elif draw(st.booleans()):
        np.save(file, draw(array_of()), allow_pickle=True)
        return "set.npy", draw(mutated([file.getvalue()], changes=2))
    else:
        np.savez(file, **usual)  # type: ignore[arg-type]
        return "set.npz", draw(mutated([file.getvalue()]))
    return "set.npz", file.getvalue()


def read_arrays(content: tuple[str, bytes], folder: Path) -> None:
    name, data = content
    (folder / name).write_bytes(data)
    bundle = DATASETS["arrays"](SourceOptions(root=folder / name))
    make_split(bundle.train)
    bundle.train.read(np.arange(len(bundle.train)))


# Archives and other binary files


def _zip_seed() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for number, name in enumerate(("red/0.png", "red/1.png", "blue/0.png", "blue/1.png", "../../out.png")):
            image = io.BytesIO()
            Image.fromarray(picture(number % 2, number, side=4)).save(image, "PNG")
            archive.writestr(name, image.getvalue())
    return file.getvalue()


def read_zip(content: bytes, folder: Path) -> None:
    (folder / "set.zip").write_bytes(content)
    bundle = DATASETS["imagefolder"](SourceOptions(root=folder / "set.zip", image_size=4))
    make_split(bundle.train, per_class=1)


def _pickle_seeds() -> list[bytes]:
    content = {b"data": np.zeros((2, 3072), dtype=np.uint8), b"labels": [0, 1], b"batch_label": b"x"}
    return [pickle.dumps(content, protocol) for protocol in (0, 2, 4)]


def read_pickle(content: bytes, _folder: Path) -> None:
    read_batch(content, "fuzz")


IDX = bytes((0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 3)) + bytes(18)


def read_idx_file(content: bytes, folder: Path) -> None:
    (folder / "file").write_bytes(content)
    read_idx(folder / "file", dimensions=3)


def _model_seeds() -> list[bytes]:
    config = build_config(overrides=("encoder=none", "projection_dim=2")).model_dump(mode="json")
    facts = {"config": config, "class_names": ["a", "b"], "shape": [6]}
    encoder = build_encoder("none", input_shape=(6,))
    network = Network(encoder, classes=2, projection_dim=2, mean=[0.0] * 6, std=[1.0] * 6)
    tensors = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    good = save(tensors, metadata={"protocon": json.dumps(facts)})
    odd = [
        save(tensors, metadata={"protocon": text})
        for text in ("{}", "[]", '{"config": {}, "class_names": 3, "shape": "x"}', '{"config": [], "shape": [-1]}')
    ]
    return [good, good, good, *odd, save(tensors)]


def read_model(content: bytes, folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(content)
    load_run(folder)


def read_weights_file(content: bytes, folder: Path) -> None:
    file = folder / ("weights.pth" if content[:2] in (b"PK", b"\x80\x04") else "weights.safetensors")
    file.write_bytes(content)
    read_weights(file)


def _weights_seeds() -> list[bytes]:
    file = io.BytesIO()
    torch.save({"state_dict": {"a": torch.zeros(2)}}, file)
    return [file.getvalue(), save({"a": torch.zeros(3)}), pickle.dumps(print)]


@st.composite
def run_file(draw: st.DrawFn) -> tuple[str, bytes]:
    """A file of a run folder that somebody edited or a crash tore."""
    names = ("metrics.jsonl", LOCK, "result.json", "epoch-00001.safetensors", "warnings.jsonl")
    name = draw(st.sampled_from(names))
    rows = b'{"epoch": 0, "loss_x": 1.0}\n{"epoch": 1}\n'
    held = [b'{"pid": %s, "host": "x", "started": 3}' % pid for pid in (b"1", b"-1", b"9" * 400, b"1e9")]
    seeds = [rows, b"null\n[1]\n", *held]
    return name, draw(mutated(seeds, changes=3))


def read_run_file(content: tuple[str, bytes], folder: Path) -> None:
    name, data = content
    (folder / name).write_bytes(data)
    run = RunFolder(folder)
    if name == "metrics.jsonl":
        run.metrics()
        run.keep_epochs(1, lambda _: None)
    elif name == "warnings.jsonl":
        run.warnings()
    elif name == "result.json":
        run.result()
    elif name == LOCK:
        with locked(folder, lambda _: None):
            pass
    else:
        load_checkpoint(folder / name)


TARGETS: dict[str, Target] = {
    "settings as YAML": Target(yaml_bytes(), read_yaml, 14),
    "key=value": Target(OVERRIDES, override, 12),
    "labels.csv": Target(label_bytes(), read_labels, 10),
    "labels.xlsx": Target(
        WORKBOOK_ROWS | mutated([workbook([["file", "label"], ["0.png", "cat"], ["a/0.png", 3.5]])]), read_workbook, 3
    ),
    "folders of files": Target(FOLDERS, read_folder, 4),
    "folders with labels": Target(user_folders.CASES, read_user_folder, 8),
    "split file": Target(split_bytes(), read_split, 8),
    "images": Target(mutated(_image_seeds()), read_image, 13),
    "npz and npy": Target(array_file(), read_arrays, 12),
    "zip of images": Target(mutated([_zip_seed()]), read_zip, 4),
    "CIFAR pickle": Target(mutated(_pickle_seeds()), read_pickle, 3),
    "IDX": Target(mutated([IDX]), read_idx_file, 2),
    "model": Target(mutated(_model_seeds(), changes=3), read_model, 3),
    "weights": Target(mutated(_weights_seeds(), changes=3), read_weights_file, 2),
    "files of a run": Target(run_file(), read_run_file, 2),
}
