"""A random audit: who is drawn, what the answers say, and how far off that can be."""

import csv
import html
import io
import json
import re
from pathlib import Path

import numpy as np
import pytest

from protocon.errors import DataError, RunError
from protocon.report.audit_estimate import draw_audit, judge_audit, powered_estimate
from tests.commands import run_command
from tests.report.folders import label, write_json, write_run

NAMES = ("ant", "bee")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    rows = [label(f"{i:03}.png", NAMES[i % 2], 0.9 if i % 4 else 0.6) for i in range(200)]
    for i in range(20):
        rows[i] |= {"split": "labelled", "given": NAMES[i % 2]}
    return write_run(tmp_path / "run", NAMES, rows, truth=False, test=False)


def test_images_are_drawn_from_the_unlabelled_ones_and_by_seed(run: Path) -> None:
    drawn = draw_audit(run, count=30)
    assert len(set(drawn.names)) == 30
    assert drawn.population == 180
    assert min(drawn.rows) >= 20  # never one whose label was given
    assert draw_audit(run, count=30).names == drawn.names
    assert draw_audit(run, count=40).names[:30] == drawn.names
    other = draw_audit(run, count=30, seed=1)
    assert len(set(other.names) & set(drawn.names)) < 20
    assert 60 < np.mean(drawn.rows) < 150  # from everywhere


def test_the_estimate_corrects_confidences_that_are_too_high() -> None:
    right = np.array([True] * 15 + [False] * 15)
    found = powered_estimate(right, np.full(30, 0.99), 0.99, 10_000)
    assert found.share == pytest.approx(0.5)
    assert found.low < 0.36 < 0.64 < found.high  # as wide as the answers alone allow
    told = powered_estimate(right, np.where(right, 0.95, 0.05), 0.5, 10_000)
    assert told.share == pytest.approx(0.5)
    assert told.high - told.low < 0.75 * (found.high - found.low)  # confidences that tell right from wrong help
    whole = powered_estimate(right, np.full(30, 0.99), 0.99, 30)
    assert (whole.low, whole.share, whole.high) == pytest.approx((0.5, 0.5, 0.5))  # all were asked


@pytest.mark.parametrize("truth", [0.5, 0.8, 0.95, 0.99])
@pytest.mark.parametrize("calibrated", [True, False])
def test_the_interval_covers_the_truth_in_nine_of_ten_audits(truth: float, calibrated: bool) -> None:
    draw = np.random.default_rng(int(1000 * truth))
    covered = 0
    for _ in range(300):
        sure = draw.beta(6 * truth, 6 * (1 - truth), 400)
        right = draw.random(400) < (sure if calibrated else truth)
        chosen = draw.permutation(400)[:30]
        found = powered_estimate(right[chosen], sure[chosen], float(sure.mean()), 400)
        covered += found.low <= right.mean() <= found.high
    assert covered >= 0.9 * 300


def test_answers_are_counted_against_what_the_model_says(run: Path) -> None:
    drawn = draw_audit(run, count=10)
    said = {name: NAMES[int(row) % 2] for name, row in zip(drawn.names, drawn.rows, strict=True)}
    content = judge_audit(run, drawn, said, seed=0)
    assert (content["right"], content["images"]) == (10, 10)
    wrong = said | {drawn.names[0]: "cow"}
    assert judge_audit(run, drawn, wrong, seed=0)["right"] == 9
    with pytest.raises(DataError, match=r"1 of 10 images have no answer.*leaving out the hard ones"):
        judge_audit(run, drawn, said | {drawn.names[3]: ""}, seed=0)


def test_the_command_hands_out_a_table_and_takes_it_back(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    first = run_command(monkeypatch, capsys, "audit", str(run), "--json")
    assert first.code == 0, first.err
    page = (run / "audit.html").read_text()
    assert all(name in page for name in first.json["images"])
    assert "0.9" not in page.partition("</style>")[2]  # nothing of what the model thinks
    (run / "audit.csv").unlink()
    said = run_command(monkeypatch, capsys, "audit", str(run)).out
    assert said.endswith(f"\n  {first.json['next']}\n")  # on a line of its own, to be copied
    with (run / "audit.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["file"] for row in rows] == first.json["images"]
    assert {row["label"] for row in rows} == {""}
    again = run_command(monkeypatch, capsys, "audit", str(run))
    assert again.code == 1
    assert "fill it in" in again.err  # answers are never overwritten
    answers = run.parent / "answers.csv"
    lines = [f"{row['file']};{NAMES[int(row['file'][:3]) % 2].upper()}" for row in rows[:-1]]
    answers.write_text("file;label\n" + "\n".join([*lines, f"{rows[-1]['file']};?"]))
    done = run_command(monkeypatch, capsys, "audit", str(run), "--answers", str(answers), "--json")
    assert done.code == 0, done.err
    assert (done.json["right"], done.json["images"]) == (29, 30)
    kept = json.loads((run / "audit.json").read_text())
    assert kept["interval"] == done.json["interval"]
    assert "by a random audit of 30 images" in (run / "report.html").read_text()


PLACES = ("playground", "beach")


@pytest.fixture
def places(tmp_path: Path) -> Path:
    rows = [label(f"{i:03}.png", PLACES[i % 2], 0.9) for i in range(40)]
    return write_run(tmp_path / "run", PLACES, rows, truth=False, test=False)


def _answered(run: Path, **first: str) -> tuple[Path, str]:
    """A table of right answers, but for the first image's; and that image."""
    names = draw_audit(run, count=10).names
    said = {name: PLACES[int(name[:3]) % 2] for name in names} | {names[0]: first["said"]}
    sheet = run.parent / "answers.csv"
    sheet.write_text("file,label\n" + "".join(f"{name},{answer}\n" for name, answer in said.items()))
    return sheet, names[0]


@pytest.mark.parametrize(
    ("said", "meant"), [("playgroud", "playground"), ("Play-Grounds", "playground"), ("baech", "beach")]
)
def test_a_misspelt_class_is_no_error_of_the_model(
    places: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], said: str, meant: str
) -> None:
    sheet, image = _answered(places, said=said)
    done = run_command(monkeypatch, capsys, "audit", str(places), "-n", "10", "--answers", str(sheet))
    assert done.code == 1
    assert "1 of 10 answers may be misspelt" in done.err
    assert f"  {image}: '{said}' is no class of this run; did you mean {meant}?\n" in done.err
    assert not (places / "audit.json").exists()


def test_an_answer_that_is_near_no_class_counts_as_wrong_and_is_said(
    places: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ("audit", str(places), "-n", "10", "--answers")
    sheet, image = _answered(places, said="harbour")
    done = run_command(monkeypatch, capsys, *command, str(sheet))
    assert done.code == 0, done.err
    assert "9 of 10 answers agree" in done.out
    assert f"{image} is harbour" in done.out
    assert "'harbour' is no class of this run" in done.out
    assert json.loads((places / "audit.json").read_text())["no_class"] == ["harbour"]
    nobody = run_command(monkeypatch, capsys, *command, str(_answered(places, said="?")[0]))
    assert "9 of 10 answers agree" in nobody.out
    assert "no class" not in nobody.out  # it is not meant to be one


def test_a_misspelt_answer_in_the_terminal_is_asked_for_again(
    places: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    right = [PLACES[int(name[:3]) % 2] for name in draw_audit(places, count=10).names]
    typed = "\n".join([right[0] + "x", *right]) + "\n"
    monkeypatch.setattr("sys.stdin", io.StringIO(typed))
    done = run_command(monkeypatch, capsys, "audit", str(places), "-n", "10", "--ask")
    assert done.code == 0, done.err
    assert f"did you mean {right[0]}?" in done.err
    assert "10 of 10 answers agree" in done.out


def test_terminal_and_page_say_why_the_estimate_is_not_the_share_of_answers(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    names = draw_audit(run, count=10).names
    said = {name: NAMES[int(name[:3]) % 2] for name in names} | {names[0]: "?"}
    sheet = run.parent / "answers.csv"
    sheet.write_text("file,label\n" + "".join(f"{name},{answer}\n" for name, answer in said.items()))
    command = ("audit", str(run), "-n", "10", "--answers", str(sheet))
    why = "combines them with the model's confidences"
    first = run_command(monkeypatch, capsys, *command).out.partition("\n")[0]
    assert re.search(f"9 of 10 answers agree; the estimate {why}", first)
    page = html.unescape((run / "report.html").read_text())
    assert re.search(rf"9 of 10\s+answers agree \(the estimate {why}", page)
    assert json.loads((run / "audit.json").read_text())["accuracy"] != pytest.approx(0.9, abs=0.001)


def test_the_last_line_says_how_answers_become_labels_and_what_they_no_longer_measure(
    places: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ("audit", str(places), "-n", "10", "--answers")
    sheet, _ = _answered(places, said="?")
    assert "next run" not in run_command(monkeypatch, capsys, *command, str(sheet)).out  # it has no table of labels
    write_json(places / "data.json", {"data": "folder", "root": str(places.parent)})
    last = run_command(monkeypatch, capsys, *command, str(sheet)).out.splitlines()[-1]
    assert f"add those in {sheet} to your table of labels, but for those with `?`. " in last
    assert "audit that run too, which draws other images" in last
    sheet, _ = _answered(places, said="harbour")
    assert "but for" not in run_command(monkeypatch, capsys, *command, str(sheet)).out


def test_an_audit_of_the_next_run_draws_other_images(run: Path, tmp_path: Path) -> None:
    asked = set(draw_audit(run, count=30).names)
    rows = [label(f"{i:03}.png", NAMES[i % 2], 0.9) for i in range(200)]
    for row in rows:
        if row["file"] in asked:  # the answers were given as labels
            row |= {"split": "labelled", "given": row["refined"]}
    following = write_run(tmp_path / "next", NAMES, rows, truth=False, test=False)
    assert not asked & set(draw_audit(following, count=30).names)


def test_what_cannot_be_audited_is_explained(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"no labels\.csv"):
        draw_audit(tmp_path)
