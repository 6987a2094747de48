"""`protocon train` on small data of every layout, and on images of every kind."""

import csv
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from protocon.data.registry import DATASETS
from tests.commands import run_command
from tests.engine.layouts import LAYOUTS, TRAIN, picture, save_class

QUICK = (
    "optim.epochs=2",
    "optim.batch_size=4",
    "optim.mu=3",
    "network.projection_dim=8",
    "run.tensorboard=false",
    "run.report=false",
)
CIFAR_ZIP = Path(__file__).parents[2].parent / "shared" / "data" / "cifar10.zip"


def rows_of(run: str) -> list[dict[str, str]]:
    with (Path(run) / "opinions.csv").open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def test_every_data_source_has_a_layout_here() -> None:
    assert {source for source, _ in LAYOUTS.values()} == set(DATASETS)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_train_works_on(
    layout: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    source, write = LAYOUTS[layout]
    root = tmp_path / "data"
    root.mkdir()
    settings = write(root)
    images = layout != "embeddings"
    if source != "digits" and not any(s.startswith("data.root=") for s in settings):
        settings.append(f"data.root={root}")
    if source == "digits":
        settings += ["optim.batch_size=32", "optim.mu=7"]  # all 1,797 of them
    if images:
        settings += ["network.encoder=wrn-10-1", "data.image_size=16"]
    arguments = ["train", "--data", source, "--out", str(tmp_path / "runs"), "--json", *QUICK, *settings]
    done = run_command(monkeypatch, capsys, *arguments)
    assert done.code == 0, done.err
    result = done.json
    made = ("config.yaml", "env.json", "split.json", "metrics.jsonl", "model.safetensors", "labels.csv", "opinions.csv")
    for file in made:
        assert (Path(result["run"]) / file).stat().st_size > 0
    assert [row["split"] for row in rows_of(result["run"])].count("unlabelled") == result["unlabelled"]
    assert [row["split"] for row in rows_of(result["run"])].count("labelled") == result["labelled"]
    assert (result["test_accuracy"] is None) == (layout in ("folder", "images"))


KINDS: dict[str, Callable[[Image.Image], Image.Image]] = {
    "grey.png": lambda image: image.convert("L"),
    "colour and alpha.png": lambda image: image.convert("RGBA"),
    "palette.png": lambda image: image.convert("P"),
    "palette.gif": lambda image: image.convert("P"),
    "cmyk.jpg": lambda image: image.convert("CMYK"),
    "sixteen bits.png": lambda image: Image.fromarray(np.array(image.convert("L"), dtype=np.uint16) * 257),
    "one bit.png": lambda image: image.convert("1"),
    "grey and alpha.png": lambda image: image.convert("LA"),
}


def test_train_works_on_images_of_every_kind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    photos = tmp_path / "photos"
    save_class(photos / "red", 0, TRAIN)
    save_class(photos / "blue", 1, TRAIN)
    for number, (name, change) in enumerate(KINDS.items()):
        change(Image.fromarray(picture(0, 300 + number))).save(photos / "red" / name)
    turned = Image.fromarray(picture(1, 400))
    exif = turned.getexif()
    exif[0x0112] = 6
    turned.save(photos / "blue" / "turned.jpg", exif=exif)
    arguments = ["--data", "imagefolder", "--root", str(photos), "--labels-per-class", "2", "data.image_size=16"]
    out = ["--out", str(tmp_path / "runs"), "--json", "network.encoder=wrn-10-1"]
    done = run_command(monkeypatch, capsys, "train", *arguments, *out, *QUICK)
    assert done.code == 0, done.err
    names = {Path(row["file"]).name for row in rows_of(done.json["run"])}
    labelled = (Path(done.json["run"]) / "split.json").read_text()
    for name in (*KINDS, "turned.jpg"):
        assert name in names or name in labelled
    files = [str(photos / "red" / name) for name in KINDS] + [str(photos / "blue" / "turned.jpg")]
    predicted = run_command(monkeypatch, capsys, "predict", done.json["run"], *files, "--json")
    assert predicted.code == 0
    assert [row["label"] in ("red", "blue") for row in predicted.json["predictions"]] == [True] * len(files)


@pytest.mark.skipif(not CIFAR_ZIP.is_file(), reason="the real CIFAR-10 is not beside the project (cifar10.zip)")
def test_train_works_on_the_real_cifar10(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its first images as class folders; the whole set is for benchmarks."""
    with zipfile.ZipFile(CIFAR_ZIP) as archive:
        seen: dict[str, int] = {}
        for name in sorted(archive.namelist()):
            part = name.rpartition("/")[0]
            wanted = 12 if "/train/" in name else 4
            if name.endswith(".png") and seen.get(part, 0) < wanted:
                seen[part] = seen.get(part, 0) + 1
                archive.extract(name, tmp_path)
    shutil.move(tmp_path / "cifar10", tmp_path / "data")
    arguments = ["--data", "cifar10", "--root", str(tmp_path / "data"), "--labels-per-class", "4"]
    out = ["--out", str(tmp_path / "runs"), "--json", "network.encoder=wrn-10-1"]
    done = run_command(monkeypatch, capsys, "train", *arguments, *out, *QUICK)
    assert done.code == 0, done.err
    assert (done.json["labelled"], done.json["unlabelled"]) == (40, 80)
    assert len(rows_of(done.json["run"])) == 120
