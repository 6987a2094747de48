"""The model card beside the model: data, labels, figures, limits."""

from pathlib import Path

import pytest
import yaml

from protocon.report.model_card import build_card
from protocon.report.record import read_record
from tests.commands import run_command
from tests.report.folders import label, write_json, write_run

NAMES = ("ant|eater", "bee")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    rows = [label(f"{i:03}.png", NAMES[i % 2], 0.9) for i in range(60)]
    for i in range(10):
        rows[i] |= {"split": "labelled", "given": NAMES[i % 2]}
    folder = write_run(tmp_path / "run", NAMES, rows, truth=False, test=False)
    counts = [{"name": "ant|eater", "labelled": 7}, {"name": "bee", "labelled": 3}]
    write_json(
        folder / "data.json", {"data": "folder", "classes": counts, "counts": {"labelled": 10, "unlabelled": 50}}
    )
    return folder


def section(card: str, title: str) -> str:
    return card.split(f"\n## {title}\n")[1].split("\n## ")[0]


def test_it_tells_data_labels_and_limits(run: Path) -> None:
    card = build_card(read_record(run))
    head = yaml.safe_load(card.split("---\n")[1])
    assert head["library_name"] == "protocon"
    data = section(card, "Data and labels")
    assert "10 labelled and 50 unlabelled images" in data
    assert "| ant\\|eater | 7 |" in data
    limits = section(card, "Limits")
    assert "No image was drawn at random" in limits
    assert "fewer than four labels, of which little is known: bee." in limits


def test_it_gives_the_figures_of_the_result(run: Path) -> None:
    triage = {"threshold": 0.95, "accepted": 40, "unchecked": 0, "review": 10}
    wrong = [{"file": "1.png", "given": "bee", "looks_like": "ant|eater", "confidence": 0.99}]
    checked = {"hidden": 10, "found": 9, "threshold": 0.95, "accepted": 8, "accepted_right": 8, "conclusive": True}
    result = {"triage": triage, "labels_that_look_wrong": wrong, "cross_check": checked, "test_accuracy": 0.875}
    write_json(run / "result.json", result)
    card = build_card(read_record(run))
    figures = section(card, "How good it is")
    assert "Test accuracy 87.50 %" in figures
    assert "40 labels accepted, 10 to look at, 1 of yours looks wrong." in figures
    assert "9 of 10 predictions agree" in figures
    assert "Labels that look wrong and were learnt all the same: 1" in section(card, "Limits")
    assert "No image was drawn at random" not in card


def test_an_audit_puts_its_figure_first(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    drawn = run_command(monkeypatch, capsys, "audit", str(run), "--json").json["images"]
    rows = [f"{name},{NAMES[int(name[:3]) % 2]}" for name in drawn]
    (tmp_path / "answers.csv").write_text("file,label\n" + "\n".join(rows))
    done = run_command(monkeypatch, capsys, "audit", str(run), "--answers", str(tmp_path / "answers.csv"))
    assert done.code == 0, done.err
    assert section((run / "README.md").read_text(), "How good it is").strip().startswith("- About")
