"""labels.csv, evaluation.json, clusters.json and classes.jsonl of real runs."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from rich.console import Console

from protocon.engine.labelling import judgement
from protocon.engine.loop.metrics import confusion
from protocon.engine.run import fit
from protocon.engine.setup.session import prepare
from protocon.runs.layout import LABEL_COLUMNS, OPINION_COLUMNS
from protocon.runs.run_folder import RunFolder
from protocon.settings.config import build_config
from tests.engine.layouts import picture
from tests.engine.runs import quiet, small_config, small_run

Rows = list[dict[str, str]]


def read_table(file: Path) -> Rows:
    with file.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as text:
        return list(csv.DictReader(text))


def read_labels(run: Path) -> Rows:
    """Rows of labels.csv with those of opinions.csv."""
    pairs = zip(read_table(run / "labels.csv"), read_table(run / "opinions.csv"), strict=True)
    return [opinions | row for row, opinions in pairs]


@pytest.fixture(scope="module")
def protocon_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(small_run(tmp_path_factory.mktemp("runs"), "epochs=3", labels_per_class=4)["run"])


@pytest.fixture(scope="module")
def baseline_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(small_run(tmp_path_factory.mktemp("runs"), "epochs=2", method="fixmatch-da")["run"])


def test_every_image_has_one_row_in_the_order_of_the_data(protocon_run: Path) -> None:
    session = prepare(small_config("epochs=3", labels_per_class=4))
    rows = read_labels(protocon_run)
    assert tuple(read_table(protocon_run / "labels.csv")[0]) == LABEL_COLUMNS
    assert tuple(read_table(protocon_run / "opinions.csv")[0]) == OPINION_COLUMNS
    assert [row["file"] for row in rows] == [row["file"] for row in read_table(protocon_run / "labels.csv")]
    assert [row["file"] for row in rows] == list(session.bundle.train.ids)
    labelled = {int(i) for i in session.split.labelled}
    for position, row in enumerate(rows):
        truth = str(session.bundle.train.labels[position])
        if position in labelled:
            assert (row["split"], row["given"], row["label"], row["truth"]) == ("labelled", truth, truth, "")
            assert (row["looks_like"], row["cluster"], row["agreement"]) == (row["classifier"], "", "")
        else:
            assert (row["split"], row["given"], row["truth"]) == ("unlabelled", "", truth)
            assert row["looks_like"] == row["label"]
            assert row["agreement"] == ("yes" if row["classifier"] == row["cluster"] else "no")


def test_triage_follows_its_rule_and_ranks_without_gaps(protocon_run: Path) -> None:
    rows = read_labels(protocon_run)
    unlabelled = [row for row in rows if row["split"] == "unlabelled"]
    for row in unlabelled:
        same = row["label"] == row["classifier"] == row["cluster"] == row["prototype"]
        if abs(float(row["confidence"]) - 0.95) > 1e-4:  # the file rounds
            assert (row["triage"] == "accept") == (same and float(row["confidence"]) > 0.95)
        assert (row["review_rank"] == "") == (row["triage"] == "accept")
    ranked = sorted((row for row in rows if row["review_rank"]), key=lambda row: int(row["review_rank"]))
    assert [int(row["review_rank"]) for row in ranked] == list(range(1, len(ranked) + 1))
    doubts = [
        (-sum(row[k] != row["label"] for k in ("classifier", "cluster", "prototype")), row["confidence"])
        for row in ranked
        if row["split"] == "unlabelled"
    ]
    assert doubts == sorted(doubts)
    triage = RunFolder(protocon_run).result()["triage"]
    accepted = [row for row in unlabelled if row["triage"] == "accept"]
    assert (triage["accepted"], triage["review"]) == (len(accepted), len(unlabelled) - len(accepted))
    right = sum(row["label"] == row["truth"] for row in accepted)
    expected = pytest.approx(right / len(accepted)) if accepted else None
    assert triage["accept_precision"] == expected


def test_a_method_without_clusters_leaves_their_columns_empty(baseline_run: Path) -> None:
    rows = read_labels(baseline_run)
    assert tuple(read_table(baseline_run / "opinions.csv")[0]) == OPINION_COLUMNS
    empty = ("cluster", "cluster_confidence", "agreement", "prototype", "prototype_score")
    assert {row[column] for row in rows for column in empty} == {""}
    assert not (baseline_run / "clusters.json").exists()
    assert not (baseline_run / "classes.jsonl").exists()


def test_evaluation_counts_every_test_image_once(protocon_run: Path) -> None:
    content = json.loads((protocon_run / "evaluation.json").read_text())
    right = sum(count for true, said, count in content["confusion"] if true == said)
    last = RunFolder(protocon_run).metrics()[-1]["test_accuracy_ema"]
    assert content["images"] == sum(count for _, _, count in content["confusion"]) == 400
    assert right / 400 == pytest.approx(last)
    assert content["class_names"] == [str(digit) for digit in range(10)]


def test_confusion_leaves_unknown_labels_out() -> None:
    logits = torch.tensor([[2.0, 1.0], [0.0, 1.0], [0.0, 1.0], [3.0, 0.0]])
    assert confusion(logits, torch.tensor([0, 0, 1, -1])) == [(0, 0, 1), (0, 1, 1), (1, 1, 1)]


def test_clusters_and_classes_are_on_record(protocon_run: Path) -> None:
    clusters = json.loads((protocon_run / "clusters.json").read_text())
    (head,) = clusters["heads"]
    assert sum(head["members"]) == RunFolder(protocon_run).result()["unlabelled"]
    assert len(head["members"]) == clusters["clusters"]
    rows = [json.loads(line) for line in (protocon_run / "classes.jsonl").read_text().splitlines()]
    assert [row["epoch"] for row in rows] == [0, 1, 2]
    session = prepare(small_config("epochs=3", labels_per_class=4))
    counts = np.bincount(session.truth.numpy(), minlength=10)
    overall = sum(rows[-1]["pseudo_accuracy"][str(c)] * counts[c] for c in range(10)) / counts.sum()
    assert overall == pytest.approx(RunFolder(protocon_run).metrics()[-1]["pseudo_accuracy_refined"], abs=1e-5)


def test_chunks_change_nothing(tmp_path: Path, protocon_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judgement, "_CHUNK_NUMBERS", 2000)
    pieces = Path(small_run(tmp_path, "epochs=3", labels_per_class=4)["run"])
    for ours, theirs in zip(read_labels(pieces), read_labels(protocon_run), strict=True):
        for column, value in ours.items():
            if column.endswith(("confidence", "score")) and value:
                # Other batches sum in another order.
                assert float(value) == pytest.approx(float(theirs[column]), abs=2e-4)
            elif column not in ("review_rank", "why"):
                assert value == theirs[column]


NAMES: list[str | bytes] = [
    'a "quoted", name.png',
    "line\nbreak.png",
    "umlaut ü 猫.png",
    "=1+1.png",
    b"not utf-8 \xff.png",
]


def folder_of_odd_names(root: Path) -> dict[str, Any]:
    root.mkdir()
    lines = ["file,label"]
    for number in range(24):
        Image.fromarray(picture(number % 2, number)).save(root / f"{number:02}.png")
        if number < 6:
            lines.append(f"{number:02}.png,{'<b>red</b>' if number % 2 == 0 else 'blue, dark'!r}".replace("'", '"'))
    for number, name in enumerate(NAMES):
        target = root / (name if isinstance(name, str) else name.decode("utf-8", "surrogateescape"))
        with target.open("wb") as file:
            Image.fromarray(picture(0, 100 + number)).save(file, format="PNG")
    (root / "labels.csv").write_text("\n".join(lines).replace("<b>red</b>", '"<b>red</b>"').replace('""', '"'))
    return {"name": "folder", "root": root}


def test_file_names_survive_the_way_through_csv(tmp_path: Path) -> None:
    data = folder_of_odd_names(tmp_path / "photos")
    overrides = (
        "epochs=2",
        "image_size=16",
        "encoder=wrn-10-1",
        "tensorboard=false",
        "report=false",
        "neighbours=5",
        "batch_size=4",
    )
    config = build_config(settings={"data": data}, overrides=overrides)
    run = Path(fit(config, out=tmp_path / "runs", console=quiet())["run"])
    rows = read_labels(run)
    expected = {n if isinstance(n, str) else n.decode("utf-8", "surrogateescape") for n in NAMES}
    assert expected <= {row["file"] for row in rows}
    assert len(rows) == 24 + len(NAMES)
    assert {row["truth"] for row in rows} == {""}
    assert {row["label"] for row in rows} <= {"<b>red</b>", "blue, dark"}
    assert RunFolder(run).result()["triage"]["accept_precision"] is None
    assert not (run / "evaluation.json").exists()


def test_a_spreadsheet_opens_the_labels_with_the_answer_first(protocon_run: Path) -> None:
    content = (protocon_run / "labels.csv").read_bytes()
    assert content.startswith(b"\xef\xbb\xbffile,label,")
    assert len(content.splitlines()[0].split(b",")) == 8


def test_every_image_to_look_at_says_why(protocon_run: Path) -> None:
    for row in read_labels(protocon_run):
        assert bool(row["why"]) == bool(row["review_rank"])
        if row["why"].startswith("opinions differ: "):
            seen = {row["label"], row["classifier"], row["cluster"], row["prototype"]}
            assert set(row["why"].removeprefix("opinions differ: ").split(" or ")) == seen


def test_a_lay_users_terminal_has_a_handful_of_lines_and_says_where_the_run_is(tmp_path: Path) -> None:
    data = folder_of_odd_names(tmp_path / "photos")
    for number in range(12):
        (tmp_path / "photos" / f"notes{number}.txt").write_text("x")
    overrides = ("epochs=1", "image_size=16", "encoder=wrn-10-1", "tensorboard=false", "report=false", "neighbours=5")
    config = build_config(settings={"data": data}, overrides=(*overrides, "batch_size=4"))
    console = Console(record=True, file=io.StringIO(), width=200)
    fit(config, out=tmp_path / "runs", name="mine", console=console)
    brief = console.export_text()
    assert "12 not an image (.txt)" in brief
    assert "notes3.txt" not in brief
    assert "network.encoder:" not in brief  # settings are in the files
    assert len(brief.splitlines()) <= 10
    again = fit(config, out=tmp_path / "runs", name="mine", console=console, verbose=True)
    assert Path(again["run"]).name == "mine-2"
    said = console.export_text()
    assert "mine is there already; this run is a new one, in" in said
    assert "mine-2 (--resume auto continues a run)" in said
    assert "skipped: notes3.txt" in said
    assert "network.projection_dim:" in said or "optim.batch_size" in said or "method." in said
