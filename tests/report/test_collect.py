"""The numbers on the page, against counts made by hand."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from protocon.errors import RunError
from protocon.report import collect, gallery
from protocon.report.charts import Line
from protocon.report.figures import curve_table, percent
from protocon.report.headline import headline
from protocon.report.intervals import wilson_interval
from protocon.report.label_table import RunLabels, read_labels, read_names
from protocon.report.outcome import MORE, outcome_lines
from protocon.report.record import read_record
from protocon.runs.run_folder import RunFolder
from tests.report.folders import OLD_COLUMNS, label, write_labels, write_lines, write_run, write_table

NAMES = ("ant", "bee", "cow")
ROWS = [
    label("a0", "ant", 0.99, truth="ant"),
    label("a1", "ant", 0.97, truth="ant"),
    label("b0", "bee", 0.60, truth="bee", classifier="ant", triage="review", review_rank="2"),
    label("b1", "bee", 0.90, truth="cow", cluster="cow", triage="review", review_rank="3"),
    label("c0", "cow", 0.98, truth="cow"),
    label("x", "cow", 0.55, prototype="bee", classifier="bee", truth="bee", triage="review", review_rank="1"),
    {"file": "given", "split": "labelled", "given": "ant", "refined": "ant", "classifier": "ant", "triage": "accept"},
]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return write_run(tmp_path / "run", NAMES, ROWS)


@pytest.fixture
def table(run: Path) -> RunLabels:
    return read_labels(run / "labels.csv")


@pytest.mark.parametrize(
    ("right", "n", "low", "high"),
    # Published values: Newcombe (1998), table I (81/263, 15/148, 0/20, 1/29), method 3.
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_wilsons_interval(right: int, n: int, low: float, high: float) -> None:
    assert wilson_interval(right / n, n) == pytest.approx((low, high), abs=6e-5)


def test_test_accuracy_is_the_mean_of_the_last_ten_epochs(run: Path) -> None:
    found = collect.tested(read_record(run))
    assert found is not None
    assert found.mean == pytest.approx(np.mean([e / 20 for e in range(11, 21)]))
    assert (found.epochs, found.images) == (10, 26)
    assert found.interval == wilson_interval(found.mean, 26)


def test_rare_evaluations_count_only_where_they_are(run: Path) -> None:
    rows: list[dict[str, float]] = [
        {"epoch": e} | ({"test_accuracy_ema": 0.5} if e in (3, 15) else {}) for e in range(20)
    ]
    rows[15]["test_accuracy_ema"] = 0.7
    write_lines(run / "metrics.jsonl", rows)
    found = collect.tested(read_record(run))
    assert found is not None
    assert (found.mean, found.epochs) == (0.7, 1)


def test_labels_are_counted(table: RunLabels) -> None:
    assert table.class_names == NAMES
    assert table.accuracy("refined") == (4 / 6, 6)
    assert table.accuracy("classifier") == (4 / 6, 6)
    assert table.agreement() == pytest.approx(3 / 6)
    assert int(table.unlabelled.sum()) == 6
    assert table.rank.tolist() == [0, 0, 2, 3, 0, 1, 0]


def test_numbered_classes_are_in_numeric_order(tmp_path: Path) -> None:
    write_labels(tmp_path / "labels.csv", [label("a", "10", 0.9), label("b", "9", 0.9), label("c", "1", 0.9)])
    assert read_labels(tmp_path / "labels.csv").class_names == ("1", "9", "10")


def test_names_are_read_for_chosen_rows_only(run: Path) -> None:
    assert read_names(run / "labels.csv", np.array([5, 0])) == {0: "a0", 5: "x"}


def test_confusion_of_the_test_set(run: Path, table: RunLabels) -> None:
    found = collect.confusion(read_record(run), table)
    assert found is not None
    assert found.of_truth
    assert found.counts.tolist() == [[8, 2, 0], [0, 8, 0], [0, 0, 8]]
    assert found.pairs == (("ant", "bee", 2),)


def test_without_test_set_the_two_opinions_are_confronted(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", NAMES, ROWS, test=False)
    found = collect.confusion(read_record(run), read_labels(run / "labels.csv"))
    assert found is not None
    assert not found.of_truth
    assert found.rows == "classifier’s opinion"
    assert found.counts.tolist() == [[2, 1, 0], [0, 0, 2], [0, 0, 1]]
    assert found.pairs == (("bee", "cow", 2), ("ant", "bee", 1))


def test_of_many_classes_the_most_confused_are_shown(run: Path) -> None:
    names = [f"c{i:03}" for i in range(300)]
    cells = [[i, i, 50] for i in range(300)] + [[7, 200, 30], [200, 9, 4]] + [[i, 0, 1] for i in range(20, 60)]
    (run / "evaluation.json").write_text(json.dumps({"images": 1, "class_names": names, "confusion": cells}))
    found = collect.confusion(read_record(run), None)
    assert found is not None
    assert (found.classes, len(found.names)) == (300, collect.SHOWN_CLASSES)
    assert {"c007", "c200", "c000", "c009"} <= set(found.names)
    assert found.pairs[0] == ("c007", "c200", 30)
    place = {name: number for number, name in enumerate(found.names)}
    assert found.counts[place["c007"], place["c200"]] == 30
    assert found.counts[place["c200"], place["c009"]] == 4


def test_classes_are_ordered_from_the_hardest_on(run: Path) -> None:
    found = collect.class_history(read_record(run), "pseudo_accuracy")
    assert found is not None
    assert found.names == NAMES
    assert found.values[:, -1] == pytest.approx([1 / 3, 2 / 3, 1.0])
    assert found.epochs.tolist() == list(range(1, 21))


def test_a_class_without_a_value_is_a_gap_not_a_zero(run: Path) -> None:
    write_lines(run / "classes.jsonl", [{"epoch": 0, "purity": {"bee": 0.4}}, {"epoch": 1, "purity": {"ant": 0.5}}])
    found = collect.class_history(read_record(run), "purity")
    assert found is not None
    assert found.names == ("ant", "bee")
    np.testing.assert_array_equal(found.values, [[np.nan, 0.5], [0.4, np.nan]])


def test_long_curves_are_averaged_and_keep_their_mean() -> None:
    curve = collect.Curve(np.arange(1, 9001, dtype=float), np.linspace(0, 1, 9000))
    thin = curve.thinned()
    assert len(thin) == collect.CURVE_POINTS
    assert thin.values.mean() == pytest.approx(0.5)
    assert np.interp(4500.0, thin.epochs, thin.values) == pytest.approx(0.5, abs=1e-3)


def test_cluster_sizes_against_gamma(run: Path) -> None:
    sizes = collect.cluster_members(read_record(run))
    assert sizes is not None
    assert (sizes.gamma, sizes.neighbours, sizes.below) == (10.0, 18.0, 1)
    assert sizes.members.tolist() == [9, 10, 11, 20, 40]


def test_tables_under_figures_hold_the_curves_values(run: Path) -> None:
    curve = collect.curve(read_record(run), "test_accuracy_ema")
    assert curve is not None
    table = curve_table([Line("averaged", curve, "blue")], shares=True)
    assert table.heading == ("epoch", "averaged")
    assert table.rows[0] == ("1", "5.0 %")
    assert table.rows[-1] == ("20", "100.0 %")
    assert all(percent(int(epoch) / 20) == value for epoch, value in table.rows)


def test_settings_say_where_they_come_from(run: Path) -> None:
    resolved = (run / "config.yaml").read_text().replace("encoder: auto", "encoder: wrn-10-1")
    (run / "resolved.yaml").write_text(resolved)
    reasons = {"network.encoder": "wrn-10-1 (8-pixel images)", "method.neighbours": "45 (n; 30 clusters)"}
    (run / "data.json").write_text(json.dumps({"auto": reasons}))
    rows = {name: (value, origin) for name, value, origin in collect.settings_of(read_record(run))}
    assert rows["network.encoder"] == ("wrn-10-1", "auto: 8-pixel images")
    assert rows["method.neighbours"] == ("45", "auto: n; 30 clusters")
    assert rows["data.labels_per_class"] == ("2", "asked for")
    assert rows["method.alpha"] == ("0.8", "")


def test_where_one_opinion_knew_better(table: RunLabels) -> None:
    found = gallery.knew_better(table)
    assert found is not None
    by_title = {strip.title: strip.rows.tolist() for strip in found.strips}
    # row 5: classifier bee (right), cluster cow; row 2: classifier ant, cluster bee (right); row 3: cluster cow (right)
    assert by_title["1 images: the classifier was right, the cluster wrong"] == [5]
    assert by_title["2 images: the cluster was right, the classifier wrong"] == [2, 3]


def test_without_truth_nobody_is_said_to_be_right(tmp_path: Path) -> None:
    write_labels(tmp_path / "labels.csv", [row | {"truth": ""} for row in ROWS])
    found = gallery.knew_better(read_labels(tmp_path / "labels.csv"))
    assert found is not None
    assert found.title == "Where classifier and cluster disagree"
    assert "not known" in found.note
    assert found.strips[0].rows.tolist() == [3, 2, 5]


def test_the_most_prototypical_images_agree_with_their_prototype(table: RunLabels) -> None:
    found = gallery.prototypical(table)
    assert found is not None
    assert {strip.title: strip.rows.tolist() for strip in found.strips} == {"ant": [0, 1], "bee": [3, 2], "cow": [4]}


def test_images_to_look_at_come_in_their_order_with_a_reason(table: RunLabels) -> None:
    assert gallery.to_review(table).tolist() == [5, 2, 3]
    assert gallery.reason(table, 5) == "classifier says bee; nearest prototype says bee"
    assert gallery.reason(table, 3) == "cluster says cow"
    assert gallery.reason(table, 0) == "only 99 % sure"


def test_the_headline_never_calls_agreement_accuracy(tmp_path: Path) -> None:
    rows = [row | {"truth": ""} for row in ROWS]
    run = write_run(tmp_path / "run", NAMES, rows, truth=False, test=False)
    found = headline(read_record(run), read_labels(run / "labels.csv"))
    assert "not known" in found.sentence
    assert "Agreement is not accuracy" in found.caution
    assert {card.name for card in found.cards} == {"agreement", "labels accepted", "to look at"}
    assert "not known" in next(card.note for card in found.cards if card.name == "labels accepted")


@pytest.mark.parametrize(
    ("checked", "note"),
    [
        (
            {"threshold": 0.97, "accepted": 20, "accepted_right": 19},
            "of 20 held-out labels that were as sure, 19 agreed",
        ),
        ({"threshold": None, "accepted": 0, "accepted_right": 0}, "none, since of 30 held-out labels"),
        ({"threshold": 0.95, "accepted": 0, "accepted_right": 0}, "no held-out label has a sure prediction"),
    ],
)
def test_held_out_labels_say_what_to_expect(tmp_path: Path, checked: dict[str, Any], note: str) -> None:
    rows = [row | {"truth": ""} for row in ROWS]
    run = write_run(tmp_path / "run", NAMES, rows, truth=False, test=False)
    result = json.loads((run / "result.json").read_text())
    counts = {"groups": 4, "held_out": 40, "found": 30, "accepted_before": 30, "accepted_right_before": 21}
    (run / "result.json").write_text(json.dumps(result | {"cross_check": counts | checked}))
    found = headline(read_record(run), read_labels(run / "labels.csv"))
    low, high = wilson_interval(0.75, 40)
    assert (
        "Each of your 40 labels was held out once and predicted from the others: 30 predictions agree, 75.0 %"
        in found.sentence
    )
    assert f"{100 * low:.0f} – {100 * high:.0f} %" in found.sentence
    cards = {card.name: card for card in found.cards}
    assert cards["held-out labels agree"].value == "75.0 %"
    assert note in cards["labels accepted"].note


def test_labels_that_are_alone_in_their_class_are_not_said_to_be_held_out(tmp_path: Path) -> None:
    rows = [row | {"truth": ""} for row in ROWS]
    run = write_run(tmp_path / "run", NAMES, rows, truth=False, test=False)
    result = json.loads((run / "result.json").read_text())
    checked = {"groups": 4, "held_out": 4, "found": 3, "threshold": 0.95, "accepted": 0, "conclusive": False}
    content = result | {"cross_check": checked, "labelled": 6}
    (run / "result.json").write_text(json.dumps(content))
    said = "4 of your 6 labels were held out once and predicted from the others (2 are alone in their classes): 3 "
    (line,) = (line for line in outcome_lines(content) if "held out" in line)
    assert said in line
    assert line.endswith("so no label is accepted unseen. " + MORE)
    found = headline(read_record(run), read_labels(run / "labels.csv"))
    assert said in found.sentence
    cards = {card.name: card.note for card in found.cards}
    assert "too few held-out labels have a sure prediction to accept any" in cards["labels accepted"]
    assert "agreement" not in cards  # beside held-out labels it would be taken for accuracy
    assert found.advice == MORE
    assert f"protocon audit {run}" in found.caution
    (run / "result.json").write_text(json.dumps(content | {"cross_check": checked | {"conclusive": True}}))
    assert not headline(read_record(run), read_labels(run / "labels.csv")).advice


def test_the_last_lines_end_in_paths_that_can_be_copied(tmp_path: Path) -> None:
    result = {"run": str(tmp_path), "triage": {"accepted": 3, "review": 1}}
    assert outcome_lines(result)[-1] == f"The labels are in {tmp_path / 'labels.csv'}"
    (tmp_path / "report.html").touch()
    assert outcome_lines(result)[-2:] == [
        f"Open {tmp_path / 'report.html'}",
        f"The labels are in {tmp_path / 'labels.csv'}",
    ]


def test_the_result_of_an_earlier_version_says_the_same(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", NAMES, ROWS)
    result = json.loads((run / "result.json").read_text())
    checked = {"groups": 4, "found": 30, "threshold": 0.95, "accepted": 20, "accepted_right": 19}
    for name in ("held_out", "hidden"):  # the latter in version 0.1
        (run / "result.json").write_text(json.dumps(result | {"cross_check": {name: 40, **checked}}))
        assert read_record(run).result["cross_check"] == {"held_out": 40, **checked}
        assert RunFolder(run).result()["cross_check"]["held_out"] == 40


def test_the_headline_gives_the_interval(run: Path, table: RunLabels) -> None:
    found = headline(read_record(run), table)
    low, high = wilson_interval(0.775, 26)
    assert f"77.5 % (95 % interval {percent(low)} to {percent(high)})" in found.sentence
    assert found.status == ""


@pytest.mark.parametrize(
    ("text", "message"),
    [("file,refined\na,b\n", "lacks the columns"), ("", "lacks the columns"), (None, "row 1 has 1 cells")],
)
def test_damaged_labels_are_named(run: Path, text: str | None, message: str) -> None:
    file = run / "labels.csv"
    file.write_text(file.read_text().splitlines()[0] + "\nonly\n" if text is None else text)
    with pytest.raises(RunError, match=message):
        read_labels(file)


def test_labels_of_version_01_are_read_as_well(run: Path, table: RunLabels) -> None:
    (run / "opinions.csv").unlink()
    write_table(run / "labels.csv", OLD_COLUMNS, ROWS)
    old = read_labels(run / "labels.csv")
    assert old.class_names == table.class_names
    for column in ("given", "refined", "classifier", "cluster", "prototype", "truth"):
        assert old.labels[column].tolist() == table.labels[column].tolist()
    for column, values in table.scores.items():
        np.testing.assert_array_equal(old.scores[column], values)
    assert old.rank.tolist() == table.rank.tolist()
    assert old.accepted.tolist() == table.accepted.tolist()


def test_a_table_that_a_spreadsheet_saved_with_semicolons_is_read(run: Path, table: RunLabels) -> None:
    text = (run / "labels.csv").read_text(encoding="utf-8-sig").replace(",", ";")
    (run / "labels.csv").write_text(text, encoding="utf-8-sig")
    assert read_labels(run / "labels.csv").labels["refined"].tolist() == table.labels["refined"].tolist()


def test_labels_without_their_opinions_are_still_labels(run: Path, table: RunLabels) -> None:
    (run / "opinions.csv").unlink()
    found = read_labels(run / "labels.csv")
    assert found.labels["refined"].tolist() == table.labels["refined"].tolist()
    assert not found.has("classifier")
    with (run / "opinions.csv").open("w") as file:
        file.write("file,classifier,cluster,prototype,truth,classifier_confidence,cluster_confidence,prototype_score\n")
    with pytest.raises(RunError, match=r"0 rows and labels\.csv 7"):
        read_labels(run / "labels.csv")
