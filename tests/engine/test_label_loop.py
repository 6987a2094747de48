"""Answering for the images of the review list makes a run better, and must not make it look worse."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from protocon.data.labels.own_table import FROM_LIST
from protocon.report.headline import headline
from protocon.report.outcome import outcome_lines
from protocon.report.paired import pair_runs
from protocon.report.record import read_record
from tests.commands import run_command
from tests.engine.photos import LABELS, SETTINGS, install, make_photos
from tests.features.tiny import SIDE

HARD = 10


def rows_of(file: Path) -> list[dict[str, str]]:
    with file.open(encoding="utf-8-sig", newline="") as table:
        return list(csv.DictReader(table))


def write_rows(file: Path, rows: list[dict[str, str]]) -> None:
    with file.open("w", encoding="utf-8", newline="") as table:
        writer = csv.DictWriter(table, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def answer(rows: list[dict[str, str]]) -> None:
    """Labels for the hard images, as a person writes them into the run's own table."""
    for row in rows:
        if row["file"].startswith("hard"):
            row["label"] = next(name for name in ("across", "down") if name != row["looks_like"])


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stripes that are easy to tell, and noise that nobody can, labelled as if it had stripes."""
    make_photos(tmp_path)
    install(tmp_path / "packages", monkeypatch)
    for number in range(HARD):
        noise = np.random.default_rng(100 + number).integers(0, 120, (SIDE, SIDE, 3)).astype(np.uint8)
        Image.fromarray(noise).save(tmp_path / "photos" / f"hard{number}.png")
    return tmp_path


def test_hard_labels_do_not_lower_the_headline_and_later_runs_know_them(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def train(labels: Path, name: str) -> dict[str, Any]:
        given = ("train", str(place / "photos"), "--labels", str(labels), "--out", str(place), "--name", name)
        done = run_command(monkeypatch, capsys, *given, "--json", *SETTINGS, "report=false", f"cache={place / 'cache'}")
        assert done.code == 0, done.err
        result: dict[str, Any] = json.loads(done.out)
        return result

    first = train(place / "labels.csv", "first")
    rows = rows_of(place / "first" / "labels.csv")
    answer(rows)
    write_rows(place / "answered.csv", rows)
    second = train(place / "answered.csv", "second")
    before, after = first["cross_check"], second["cross_check"]
    assert (before["held_out"], before["from_list"]) == (LABELS, 0)
    assert (after["held_out"], after["from_list"]) == (LABELS + HARD, HARD)
    # As a plain share the figure falls, which is what looked like failure.
    assert after["found"] / after["held_out"] < before["found"] / before["held_out"]
    counted = after["found"] - after["from_list_found"]
    told = headline(read_record(place / "second"), None)
    assert f"Each of your {LABELS} labels was held out once and predicted from the others: {counted} " in told.sentence
    assert f"{HARD} labels from a list to look at, which are harder than others, are not counted" in told.sentence
    assert any(f"{counted} of {LABELS} predictions agree" in line for line in outcome_lines(second))
    kept = json.loads((place / "second" / "data.json").read_text())["labels_from_list"]
    assert kept == [f"hard{number}.png" for number in range(HARD)]

    # A third run gets the second one's table, in which they are given labels like others.
    marked = [row for row in rows_of(place / "second" / "labels.csv") if row["why"].endswith(FROM_LIST)]
    assert [row["file"] for row in marked] == kept
    third = train(place / "second" / "labels.csv", "third")
    assert third["cross_check"]["from_list"] == HARD

    pair = pair_runs(read_record(place / "first"), read_record(place / "second"))
    assert (pair.common, pair.first, pair.second) == (LABELS, before["found"], counted)
    runs = (str(place / "first"), str(place / "second"))
    done = run_command(monkeypatch, capsys, "report", *runs, "--out", str(place / "both.html"))
    assert done.code == 0, done.err
    assert (
        f"On the {LABELS} labels that both held out, first predicts {pair.first} and second {pair.second}" in done.out
    )
