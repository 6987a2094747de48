"""`protocon pick` and `protocon.pick`: a table to fill in, a page of pictures, and what they take and refuse."""

import csv
import doctest
import io
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from rich.console import Console

import protocon
import protocon.picking.pick_folder as module
from protocon.data.labels.label_file import read_label_table
from protocon.data.source_options import SourceOptions
from protocon.data.sources.labelled_folder import folder as labelled_folder
from protocon.engine.run import fit
from protocon.errors import ConfigError, DataError, RunError
from protocon.features.feature_table import FeatureTable
from protocon.settings.config import build_config
from tests.commands import run_command
from tests.engine.runs import quiet
from tests.features.tiny import NAME, SIDE, save_weights
from tests.picking.blobs import blobs

COLOURS = {"red": (200, 30, 30), "green": (30, 200, 30), "blue": (30, 30, 200)}
COUNTS = {"red": 14, "green": 9, "blue": 5}
ODD = "<script>alert(1) & ü.png"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pictures of three colours in one flat folder, one of them oddly named, and an encoder's weights."""
    root = tmp_path_factory.mktemp("pick")
    (root / "photos" / "sub").mkdir(parents=True)
    generator = np.random.default_rng(0)
    names = []
    for colour, count in COUNTS.items():
        for number in range(count):
            pixels = np.clip(generator.normal(COLOURS[colour], 12, (SIDE, SIDE, 3)), 0, 255).astype(np.uint8)
            name = "sub/" * (number % 2) + f"{colour}{number:02}.png"
            Image.fromarray(pixels).save(root / "photos" / name)
            names.append(name)
    Image.fromarray(pixels).save(root / "photos" / ODD)
    (root / "photos" / "broken.png").write_bytes(b"not a picture")
    (root / "photos" / "notes.txt").write_text("not a picture either")
    save_weights(root / "weights.safetensors")
    return root


def settings(place: Path) -> list[str]:
    return [
        f"network.encoder={NAME}",
        f"network.weights={place / 'weights.safetensors'}",
        f"run.cache={place / 'cache'}",
        f"data.image_size={SIDE}",
    ]


def rows(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8-sig"))))


def fill(path: Path) -> None:
    """As somebody would: the class of each picture without a label."""
    table = rows(path)
    for row in table:
        row["label"] = row["label"] or re.sub(r".*?(red|green|blue).*", r"\1", row["file"].replace(ODD, "blue"))
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, table[0])
        writer.writeheader()
        writer.writerows(table)


def test_the_command_writes_a_table_that_train_reads_once_filled_and_a_page(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    arguments = ("pick", str(place / "photos"), "-n", "6", *settings(place), "--json")
    found = run_command(monkeypatch, capsys, *arguments, "--out", str(out))
    assert found.code == 0, found.err
    assert found.json["images"] == 29
    assert found.json["next"] == shlex.join(
        ["protocon", "train", str(place / "photos"), "--labels", str(out / "picks.csv")]
    )
    assert "broken.png" in found.err
    table = rows(out / "picks.csv")
    assert [row["file"] for row in table] == [pick["file"] for pick in found.json["picks"]]
    assert [row["rank"] for row in table] == ["1", "2", "3", "4", "5", "6"]
    assert {row["label"] for row in table} == {""}
    assert sum(int(row["stands_for"]) for row in table) == 29
    colours = {re.sub(r".*?(red|green|blue).*", r"\1", row["file"]) for row in table}
    assert colours >= {"red", "green"}

    again = run_command(monkeypatch, capsys, *arguments, "--out", str(tmp_path / "again"))
    assert "computing features" not in again.err
    for name in ("picks.csv", "picks.html"):
        assert (out / name).read_bytes() == (tmp_path / "again" / name).read_bytes()

    fill(out / "picks.csv")
    assert len(read_label_table(out / "picks.csv").rows) == 6
    bundle = labelled_folder(SourceOptions(root=place / "photos", labels=out / "picks.csv", image_size=8))
    assert (bundle.train.labels >= 0).sum() == 6

    refused = run_command(monkeypatch, capsys, *arguments, "--out", str(out))
    assert refused.code == 1
    assert "6 of its labels are filled in" in refused.err
    more = ("--labels", str(out / "picks.csv"), "--out", str(tmp_path / "more"))
    second = run_command(monkeypatch, capsys, *arguments, *more)
    assert second.code == 0, second.err
    assert second.json["labelled"] == 6
    assert not {pick["file"] for pick in second.json["picks"]} & {row["file"] for row in table}
    both = rows(tmp_path / "more" / "picks.csv")
    assert len(both) == 12
    assert sum(int(row["stands_for"]) for row in both) == 29
    assert [row["label"] != "" for row in both] == [False] * 6 + [True] * 6


def test_the_page_shows_every_pick_escapes_names_and_asks_nobody(place: Path, tmp_path: Path) -> None:
    picks = protocon.pick(place / "photos", 100, out=tmp_path, settings=settings(place), console=Console(quiet=True))
    assert len(picks) == 29
    page = (tmp_path / "picks.html").read_text(encoding="utf-8")
    assert page.count('<img src="data:image/') == 29
    assert "<script>" not in page
    assert "&lt;script&gt;alert(1) &amp; ü.png" in page
    assert not re.search(r"(src|href)=[\"'](?!data:)|url\(|@import|https?://", page)
    assert ODD in {row["file"] for row in rows(tmp_path / "picks.csv")}


def test_a_labels_file_in_the_folder_counts_even_with_one_class(place: Path, tmp_path: Path) -> None:
    root = tmp_path / "photos"
    root.mkdir()
    for name in ("red00.png", "red02.png", "green00.png", "blue00.png"):
        (root / name).write_bytes((place / "photos" / name).read_bytes())
    (root / "labels.csv").write_text("file,label\nred00.png,red\n")
    picks = protocon.pick(root, 10, settings=settings(place), console=Console(quiet=True))
    assert sorted(pick.file for pick in picks) == ["blue00.png", "green00.png", "red02.png"]
    assert picks[-1].file == "red02.png"
    (root / "labels.csv").write_text("file,label\nred00.png,\n")
    assert len(protocon.pick(root, 10, settings=settings(place), console=Console(quiet=True))) == 4
    every = "".join(f"{pick.file},x\n" for pick in picks)
    (root / "labels.csv").write_text("file,label\nred00.png,red\n" + every)
    with pytest.raises(DataError, match="nothing left to pick"):
        protocon.pick(root, 1, settings=settings(place), console=Console(quiet=True))


def test_features_with_labels_get_picks_where_there_are_none() -> None:
    features, groups = blobs((40, 40, 40))
    labels = np.where((groups == 0) & (np.arange(120) < 30), 0, -1)
    picks = protocon.pick(features, 2, labels=labels)
    assert {int(groups[pick.index]) for pick in picks} == {1, 2}
    assert [pick.rank for pick in picks] == [1, 2]


def test_the_example_in_the_docstring_runs() -> None:
    runner = doctest.DocTestRunner()
    for test in doctest.DocTestFinder().find(module.pick, globs={}):
        runner.run(test)
    assert runner.tries >= 7
    assert runner.failures == 0


def test_what_does_not_belong_together_is_refused(place: Path, tmp_path: Path) -> None:
    features, groups = blobs((5, 5))
    with pytest.raises(ConfigError, match="1 or more"):
        protocon.pick(features, 0)
    with pytest.raises(ConfigError, match="numbers, one per row"):
        protocon.pick(features, 1, labels="labels.csv")
    with pytest.raises(ConfigError, match="for a folder"):
        protocon.pick(features, 1, out=tmp_path)
    with pytest.raises(DataError, match="one per row"):
        protocon.pick(features, 1, labels=groups[:3])
    with pytest.raises(ConfigError, match="does not name its files"):
        protocon.pick(place / "photos", 1, labels=groups)
    with pytest.raises(DataError, match="does not exist"):
        protocon.pick(tmp_path / "nowhere", 1)
    (tmp_path / "picks.csv").write_text('a "broken" table,"\n')
    with pytest.raises(RunError, match="no table of picks"):
        protocon.pick(place / "photos", 1, out=tmp_path, settings=settings(place))


def test_training_finds_the_features_that_picking_computed(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = [*settings(place), f"run.cache={tmp_path / 'cache'}"]
    protocon.pick(place / "photos", n=3, settings=own, console=quiet())
    labels = tmp_path / "labels.csv"
    labels.write_text("file,label\nred00.png,red\ngreen00.png,green\nred02.png,red\ngreen02.png,green\n")
    config = build_config(
        settings={"data": {"name": "folder", "root": place / "photos", "labels": labels}, "network": {"frozen": True}},
        overrides=[*own, "epochs=1", "batch_size=4", "report=false", "run.cross_check=0"],
    )

    def computed(*_: object, **__: object) -> None:
        raise AssertionError("features are computed again")

    monkeypatch.setattr(FeatureTable, "write", computed)
    assert fit(config, out=tmp_path / "runs", console=quiet())["epochs"] == 1
