"""Nothing that is read from disk can run code, or lead out of the folder it is in."""

import ast
import io
import os
import pickle
import struct
import zipfile
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from PIL import Image

import protocon
from protocon.base.yaml_text import SAFE_LOADER
from protocon.data.files.decode import decode_image
from protocon.data.registry import DATASETS
from protocon.data.source_options import SourceOptions
from protocon.data.sources.cifar_pickle import read_batch
from protocon.engine.run import fit
from protocon.errors import ConfigError, DataError, ProtoConError
from protocon.networks.weights import read_weights
from protocon.settings.config import build_config
from protocon.settings.recipe import PlainLoader
from tests.engine.layouts import picture, save_class

SOURCE = Path(protocon.__file__).parent


class Trap:
    """Unpickled, it makes a folder."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.marker),)


def test_the_trap_works(tmp_path: Path) -> None:
    pickle.loads(pickle.dumps(Trap(tmp_path / "sprung")))
    assert (tmp_path / "sprung").is_dir()


@pytest.mark.parametrize("name", ["model.pth", "model.pt", "model.bin", "model.safetensors"])
def test_weights_files_cannot_run_code(tmp_path: Path, name: str) -> None:
    marker = tmp_path / "sprung"
    torch.save({"state_dict": {"a": torch.zeros(1)}, "trap": Trap(marker)}, tmp_path / name)
    with pytest.raises(ConfigError, match=name):
        read_weights(tmp_path / name)
    (tmp_path / name).write_bytes(pickle.dumps(Trap(marker), 2))
    with pytest.raises(ConfigError, match=name):
        read_weights(tmp_path / name)
    assert not marker.exists()


@pytest.mark.parametrize("name", ["set.npy", "set.npz"])
def test_arrays_cannot_run_code(tmp_path: Path, name: str) -> None:
    marker = tmp_path / "sprung"
    trap = np.array([Trap(marker)], dtype=object)
    if name == "set.npy":
        np.save(tmp_path / name, trap, allow_pickle=True)
    else:
        np.savez(tmp_path / name, x=trap)
    with pytest.raises(DataError, match="objects are refused"):
        DATASETS["arrays"](SourceOptions(root=tmp_path / name))
    assert not marker.exists()


@pytest.mark.parametrize("protocol", range(6))
def test_cifar_pickles_cannot_run_code(tmp_path: Path, protocol: int) -> None:
    marker = tmp_path / "sprung"
    for content in (Trap(marker), {b"data": Trap(marker)}, [Trap(marker)]):
        with pytest.raises(DataError, match="Nothing in it was run"):
            read_batch(pickle.dumps(content, protocol), "batch")
    assert not marker.exists()


def test_settings_cannot_run_code(tmp_path: Path) -> None:
    marker = tmp_path / "sprung"
    text = f"!!python/object/apply:os.mkdir [{marker}]"
    (tmp_path / "a.yaml").write_text(f"data: {{name: {text}}}")
    with pytest.raises(ConfigError, match=r"a\.yaml is not valid YAML"):
        build_config(recipe=str(tmp_path / "a.yaml"))
    with pytest.raises(ConfigError, match="alpha"):
        build_config(overrides=[f"alpha={text}"])
    assert not marker.exists()


def test_a_few_lines_of_aliases_do_not_become_a_billion_values(tmp_path: Path) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 10)]
    (tmp_path / "a.yaml").write_text("\n".join(lines))
    with pytest.raises(ConfigError, match="aliases"):
        build_config(recipe=str(tmp_path / "a.yaml"))


def _calls(tree: ast.AST) -> list[tuple[str, ast.Call]]:
    return [(ast.unparse(node.func), node) for node in ast.walk(tree) if isinstance(node, ast.Call)]


def test_no_module_has_a_call_that_runs_what_it_reads() -> None:
    forbidden = {
        "eval",
        "exec",
        "pickle.load",
        "pickle.loads",
        "os.system",
        "joblib.load",
        "shelve.open",
        "yaml.unsafe_load",
    }
    for file in SOURCE.rglob("*.py"):
        for name, call in _calls(ast.parse(file.read_text(encoding="utf-8"))):
            given = {word.arg: ast.unparse(word.value) for word in call.keywords}
            place = f"{file}:{call.lineno}"
            assert name not in forbidden, place
            assert not name.endswith((".extractall", ".extract")), place
            if name in ("np.load", "numpy.load"):
                assert given.get("allow_pickle") == "False", place
            if name == "torch.load":
                assert given.get("weights_only") == "True", place
            if name == "yaml.load":
                assert ast.unparse(call.args[1]) in ("PlainLoader", "SAFE_LOADER"), place
    assert issubclass(PlainLoader, yaml.SafeLoader)
    assert SAFE_LOADER in (yaml.SafeLoader, getattr(yaml, "CSafeLoader", None))


@pytest.mark.parametrize("way", ["../secret.png", "images/../../secret.png", "{absolute}", "..\\secret.png"])
def test_lists_cannot_name_files_outside_their_folder(tmp_path: Path, way: str) -> None:
    secret = tmp_path / "secret.png"
    Image.fromarray(picture(0, 1)).save(secret)
    root = tmp_path / "data"
    save_class(root / "images", 0, 2)
    name = way.replace("{absolute}", str(secret))
    for part in ("train", "test"):
        (root / f"{part}.csv").write_text(f"filename,label\n000.png,a\n001.png,b\n{name},a\n")
        (root / f"sketch_{part}.txt").write_text(f"images/000.png 0\n{name} 1\n")
    with pytest.raises(DataError, match=r"not below|not in"):
        DATASETS["mini-imagenet"](SourceOptions(root=root, image_size=8))
    with pytest.raises(DataError, match=r"not below|not in"):
        DATASETS["domainnet"](SourceOptions(root=root, image_size=8, domain="sketch"))


def test_labels_cannot_name_files_outside_their_folder(tmp_path: Path) -> None:
    Image.fromarray(picture(0, 1)).save(tmp_path / "secret.png")
    root = tmp_path / "data"
    save_class(root, 0, 4)
    (root / "labels.csv").write_text("000.png,a\n001.png,b\n../secret.png,a\n" + f"{tmp_path / 'secret.png'},b\n")
    try:
        bundle = DATASETS["folder"](SourceOptions(root=root, image_size=8))
    except DataError as error:
        assert "secret.png" in str(error)  # noqa: PT017  # either way is right, but never a file from outside
        return
    assert sorted(bundle.train.ids) == [f"{number:03}.png" for number in range(4)]


def test_archives_are_never_unpacked(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "set.zip", "w") as archive:
        for number, name in enumerate(("red/0.png", "red/1.png", "blue/0.png", "../out.png", "/out.png")):
            content = io.BytesIO()
            Image.fromarray(picture(number % 2, number)).save(content, "PNG")
            archive.writestr(name, content.getvalue())
    before = set(tmp_path.parent.rglob("*"))
    with suppress(DataError):  # refusing such an archive is as good
        DATASETS["imagefolder"](SourceOptions(root=tmp_path / "set.zip", image_size=8))
    assert set(tmp_path.parent.rglob("*")) == before


def _png(width: int, height: int) -> bytes:
    """A PNG that declares any size in few bytes."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    rows = zlib.compress(bytes(1_000_000))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


@pytest.mark.parametrize("sides", [(60_000, 60_000), (2**31 - 1, 2**31 - 1), (10, 2**30)])
def test_images_that_unpack_to_gigabytes_are_refused_before_they_do(sides: tuple[int, int]) -> None:
    with pytest.raises(DataError, match=r"pixels|cannot be decoded"):
        decode_image(io.BytesIO(_png(*sides)), size=8, name="bomb.png")


@pytest.mark.parametrize("name", ["../escaped", "a/b", "/tmp/escaped", "..", ""])
def test_a_runs_name_is_no_path(tmp_path: Path, name: str) -> None:
    config = build_config(settings={"data": {"name": "digits", "labels_per_class": 2}})
    with pytest.raises(ProtoConError, match="name"):
        fit(config, out=tmp_path / "runs", name=name)
    assert list(tmp_path.iterdir()) == []
