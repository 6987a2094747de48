"""The page as text: what it says, what it escapes, how large it is, and that it needs nothing else."""

import json
import re
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
import torch

from protocon.data.imageset import FeatureArray
from protocon.errors import DataError, RunError
from protocon.report import drawing
from protocon.report.label_table import read_labels
from protocon.report.page import build_page, run_labels
from protocon.report.record import read_record
from protocon.report.tiles import choose_images
from tests.report.folders import Labels, label, pictures, write_json, write_run

NAMES = ("ant", "bee")
EVIL = "<script>alert('x')</script>"
VOID = {"meta", "link", "img", "br", "hr", "input"}


class Checker(HTMLParser):
    """Notes every address, tag and unclosed element."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.tags: list[str] = []
        self.alts: list[str | None] = []
        self.open: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        found = dict(attrs)
        self.addresses += [value for name in ("src", "href") if (value := found.get(name))]
        if tag == "img":
            self.alts.append(found.get("alt"))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def some_labels(count: int = 40) -> Labels:
    rows = [label(f"{i}.png", NAMES[i % 2], 0.99, truth=NAMES[i % 2]) for i in range(count)]
    for rank, row in enumerate(rows[:10], start=1):
        row |= {"cluster": NAMES[rank % 2], "triage": "review", "review_rank": str(rank)}
    return rows


def text_of(page: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", page.partition("<body>")[2]))


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures take most of a page's time: for tests of its words they are empty."""
    monkeypatch.setattr(drawing, "_drawn", lambda *_: "data:image/svg+xml;base64,")


def test_the_page_is_whole_and_needs_no_network(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", NAMES, some_labels())
    checked = Checker(build_page([run], images=lambda _: pictures([f"{i}.png" for i in range(40)], NAMES)))
    assert not checked.open
    assert "script" not in checked.tags
    assert {address.partition(":")[0] if not address.startswith("#") else "#" for address in checked.addresses} == {
        "data",
        "#",
    }
    assert checked.alts
    assert all(checked.alts)  # every picture says what it shows


def test_the_same_run_gives_the_same_page(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", NAMES, None, epochs=2, clusters=False)
    assert build_page([run]) == build_page([run])


def test_names_of_classes_and_files_are_escaped(tmp_path: Path) -> None:
    names = (EVIL, 'quote" onerror="x', "$dollar$", "猫", "&amp;")
    rows = [label(f"{i} {EVIL}.png", names[i % 5], 0.9, truth=names[i % 5]) for i in range(20)]
    rows[0] |= {"cluster": names[1], "triage": "review", "review_rank": "1"}
    run = write_run(tmp_path / "run", names, rows)
    page = build_page([run], images=lambda _: pictures([row["file"] for row in rows], names))
    assert "<script" not in page
    assert "&lt;script&gt;alert" in page
    assert not Checker(page).open
    assert 'onerror="x' not in page


@pytest.mark.usefixtures("undrawn")
def test_a_name_that_is_not_utf8_does_not_stop_the_page(tmp_path: Path) -> None:
    rows = some_labels()
    rows[0]["file"] = "bad.png"
    run = write_run(tmp_path / "run", NAMES, rows)
    raw = (run / "labels.csv").read_bytes().replace(b"bad.png", b"bad \xff.png")
    (run / "labels.csv").write_bytes(raw)
    assert "bad ?.png" in build_page([run])


@pytest.mark.usefixtures("undrawn")
def test_without_truth_the_page_says_so(tmp_path: Path) -> None:
    rows = [row | {"truth": ""} for row in some_labels()]
    text = text_of(build_page([write_run(tmp_path / "run", NAMES, rows, truth=False, test=False)]))
    assert "How many labels are right is not known" in text
    assert "Agreement is not accuracy" in text
    assert "Not a measure of accuracy" in text  # the matrix of opinions
    for claim in ("test accuracy", "pseudo-labels right", "knew better", "Confusion matrix"):
        assert claim not in text


@pytest.mark.usefixtures("undrawn")
def test_a_baseline_has_no_clusters_on_its_page(tmp_path: Path) -> None:
    gone = ("cluster", "cluster_confidence", "prototype", "prototype_score")
    rows = [row | dict.fromkeys(gone, "") for row in some_labels()]
    run = write_run(tmp_path / "run", NAMES, rows, clusters=False, method="fixmatch")
    text = text_of(build_page([run]))
    assert "The surest images of each class" in text
    assert "Confusion matrix of the test set" in text
    for absent in ("Cluster sizes", "Cluster purity", "agreement", "disagree"):
        assert absent not in text


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("epochs", [0, 1])
def test_an_unfinished_run_shows_what_is_known(tmp_path: Path, epochs: int) -> None:
    text = text_of(build_page([write_run(tmp_path / "run", NAMES, None, epochs=epochs or 1)]))
    assert f"Unfinished: {epochs or 1} of {epochs or 1} epochs are done" in text
    if epochs == 0:
        (tmp_path / "run" / "metrics.jsonl").unlink()
        (tmp_path / "run" / "classes.jsonl").unlink()
        text = text_of(build_page([tmp_path / "run"]))
        assert "Unfinished: 0 of 1 epochs are done" in text
    else:
        assert "Pseudo-label accuracy by class" in text
    assert "Most worth a look" not in text


@pytest.mark.usefixtures("undrawn")
def test_a_torn_last_line_is_left_out(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", NAMES, None, epochs=5)
    with (run / "metrics.jsonl").open("a") as file:
        file.write('{"epoch": 5, "loss')
    assert "Unfinished: 5 of 5" in text_of(build_page([run]))


@pytest.mark.usefixtures("undrawn")
def test_embeddings_and_lost_images_appear_by_name(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", NAMES, some_labels())
    embeddings = FeatureArray(torch.zeros(40, 3), class_names=NAMES, ids=[f"{i}.png" for i in range(40)])
    page = build_page([run], images=lambda _: embeddings)
    assert "learnt from embeddings" in text_of(page)
    assert "0.png" in page

    def lost(_: object) -> None:
        raise DataError("the folder is gone")

    assert "the folder is gone" in text_of(build_page([run], images=lost))


@pytest.mark.usefixtures("undrawn")
def test_warnings_are_shown(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", NAMES, some_labels())
    (run / "warnings.jsonl").write_text(
        '{"epoch": 3, "kind": "retention", "message": "few images", "advice": "lower τ"}\n'
    )
    assert "retention in epoch 4: few images lower τ" in text_of(build_page([run]))


def test_several_runs_are_laid_over_each_other(tmp_path: Path) -> None:
    runs = [write_run(tmp_path / part / "run", NAMES, some_labels()) for part in ("one", "two")]
    text = text_of(build_page(runs))
    assert "2 runs compared" in text
    assert "one/run" in text
    assert text.count("Accuracy of the pseudo-labels") == 1
    assert text.count("Cluster sizes at the end") == 2  # each run's own part follows


@pytest.mark.usefixtures("undrawn")
def test_many_runs_are_compared_only_and_too_many_refused(tmp_path: Path) -> None:
    runs = [write_run(tmp_path / f"run{i}", NAMES, some_labels(), epochs=3) for i in range(6)]
    text = text_of(build_page(runs))
    assert "only this comparison is drawn" in text
    assert "Cluster sizes" not in text
    with pytest.raises(RunError, match="30 runs came; at most 28"):
        build_page([runs[0]] * 30)


def test_labels_of_runs_are_as_short_as_they_can_be() -> None:
    assert run_labels([Path("/a/x"), Path("/a/y")]) == ["x", "y"]
    assert run_labels([Path("/a/x"), Path("/b/x")]) == ["a/x", "b/x"]
    assert run_labels([Path("/a/x"), Path("/a/x")]) == ["x", "x"]


def test_what_is_no_run_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"no config\.yaml"):
        build_page([tmp_path])
    with pytest.raises(RunError, match="no run folder was given"):
        build_page([])


def test_a_thousand_classes_and_noisy_photos_stay_small(tmp_path: Path) -> None:
    names = [f"class number {i:04}" for i in range(1000)]
    draw = np.random.default_rng(0)
    said = draw.integers(0, 1000, (2, 20_000))
    rows = [
        label(f"{i}.png", names[a], 0.9, cluster=names[b], truth=names[a], triage="review", review_rank=str(i + 1))
        for i, (a, b) in enumerate(said.T)
    ]
    run = write_run(tmp_path / "run", names, rows, epochs=400)
    photos = pictures([f"{i}.png" for i in range(400)], names, side=224)
    page = build_page([run], images=lambda _: photos)
    assert len(page.encode()) < 5_000_000
    text = text_of(page)
    assert "The lowest 20 of 1,000 classes." in text
    assert "The 20 of 1,000 classes with the most confusions." in text
    assert "Shown are the 20 classes with the most images to look at." in text


@pytest.mark.usefixtures("undrawn")
def test_the_page_leads_with_labels_that_look_wrong_then_images_then_classes(tmp_path: Path) -> None:
    rows = some_labels()
    rows[20] |= {"split": "labelled", "given": "ant", "refined": "ant", "looks_like": "bee", "triage": "review"}
    rows[20] |= {"review_rank": "11", "truth": "", "why": "labelled ant, looks like bee (0.997)"}
    run = write_run(tmp_path / "run", NAMES, rows)
    page = build_page([run], images=lambda _: pictures([f"{i}.png" for i in range(40)], NAMES))
    text = text_of(page).partition("For researchers")[2]  # after the table of contents
    order = ["Result", "of your labels looks wrong", "Correct it in your table", "labelled ant, looks like bee (0.997)"]
    order += ["10 images to look at"]
    order += ["Classes", "For researchers: settings", "Data and settings", "Epoch by epoch", "Classes and clusters"]
    assert [text.index(part) for part in order[1:]] == sorted(text.index(part) for part in order[1:])
    wrong = page[page.index('id="wrong1"') : page.index('id="images1"')]
    assert wrong.count("<img") == 1  # the picture itself
    assert wrong.count("data:image/") == 1
    fold = page.index('<details class="fold"')
    assert page.index("Data and settings", page.index("<main>")) > fold
    assert not re.search(r'<details class="fold"[^>]* open', page)


@pytest.mark.usefixtures("undrawn")
def test_where_nothing_is_accepted_the_page_shows_the_labels_that_the_others_do_not_predict(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", NAMES, some_labels())
    doubted = [{"file": "3.png", "given": "ant", "looks_like": "bee", "confidence": 0.9388}]
    shown = {}
    for accepted in (0, 7):
        triage = {"accepted": accepted, "unchecked": 0, "review": 10, "threshold": 0.95}
        result = json.loads((run / "result.json").read_text()) if (run / "result.json").is_file() else {}
        write_json(run / "result.json", result | {"triage": triage, "labels_predicted_otherwise": doubted})
        shown[accepted] = build_page([run], images=lambda _: pictures([f"{i}.png" for i in range(40)], NAMES))
    part = shown[0][shown[0].index('id="check1"') : shown[0].index('id="images1"')]
    assert "labelled ant, looks like bee (0.939)" in part
    assert part.count("data:image/") == 1
    assert 'id="check1"' not in shown[7]


@pytest.mark.usefixtures("undrawn")
def test_the_commands_that_come_next_can_be_copied_whole(tmp_path: Path) -> None:
    run = write_run(tmp_path / "my run", NAMES, some_labels())
    write_json(run / "data.json", {"data": "folder", "root": "my photos"})
    commands = [
        f"protocon train 'my photos' --labels '{run}/labels.csv'",
        f"protocon export '{run}' --format folders --out sorted",
    ]
    page = build_page([run])
    assert [unescape(line) for line in re.findall(r'<pre class="command">(.*?)</pre>', page)] == commands
    write_json(run / "data.json", {"data": "arrays", "root": "photos.npz"})
    assert '<pre class="command">' not in build_page([run])


def test_an_image_to_look_at_shows_only_opinions_that_differ(tmp_path: Path) -> None:
    rows = [label(f"{number}.png", "ant", 0.8) for number in range(2)]
    for rank, row in enumerate(rows, 1):
        row |= {"triage": "review", "review_rank": str(rank), "truth": ""}
    rows[1]["cluster"] = "bee"
    run = write_run(tmp_path / "run", NAMES, rows, truth=False)
    record = read_record(run)
    plain, disputed = choose_images(record, read_labels(record.labels_file), None, 0).review
    assert [fact for fact, _ in plain.facts] == ["label"]
    assert [fact for fact, _ in disputed.facts] == ["label", "cluster"]


@pytest.mark.usefixtures("undrawn")
def test_every_image_to_look_at_is_on_the_page(tmp_path: Path) -> None:
    rows = some_labels(200)
    for rank, row in enumerate(rows, start=1):
        row |= {"triage": "review", "review_rank": str(rank)}
    page = build_page([write_run(tmp_path / "run", NAMES, rows)])
    assert page[page.index('id="images1"') :].count('class="why"') == 200


@pytest.mark.usefixtures("undrawn")
def test_a_random_audit_is_the_headline(tmp_path: Path) -> None:
    rows = [row | {"truth": ""} for row in some_labels()]
    run = write_run(tmp_path / "run", NAMES, rows, truth=False, test=False)
    audit = {
        "images": 30,
        "right": 27,
        "accuracy": 0.91,
        "interval": [0.79, 0.96],
        "accepted": 20,
        "accepted_right": 20,
    }
    write_json(run / "audit.json", audit)
    text = text_of(build_page([run]))
    assert "About 91.0 % of the labels are right (95 % interval 79 – 96 %), by a random audit of 30 images." in text
    assert "How many labels are right is not known" not in text


@pytest.mark.usefixtures("undrawn")
def test_runs_with_other_labels_are_not_compared_by_held_out_labels(tmp_path: Path) -> None:
    runs = []
    for number in range(2):
        run = write_run(tmp_path / f"run{number}", NAMES, some_labels(), truth=False, test=False)
        used = {"labelled": [{"file": f"{i}.png", "label": "ant"} for i in range(4 + number)]}
        write_json(run / "data.json", {"used": used})
        checked = {"groups": 4, "held_out": 30, "found": 29 - 3 * number, "threshold": 0.95, "accepted": 20}
        checked |= {"accepted_right": 20, "accepted_before": 20, "accepted_right_before": 20}
        triage = {"accepted": 3, "review": 1}
        write_json(run / "result.json", {"run": str(run), "triage": triage, "cross_check": checked})
        runs.append(run)
    text = text_of(build_page(runs))
    assert "a better run can show a lower figure" in text
    assert "run0 and run1 cannot be compared: both held out no label in common." in text
    heading = "file,given,found,confidence,sure\n"
    rows = [f"{i}.png,ant,{'bee' if i == 0 else 'ant'},0.99,yes\n" for i in range(6)]
    (runs[0] / "cross_check.csv").write_text(heading + "".join(rows))
    hard = [f"{i}.png,bee,ant,0.5,no\n" for i in range(6, 16)]
    (runs[1] / "cross_check.csv").write_text(heading + "".join([rows[0].replace("bee", "ant"), *rows[1:], *hard]))
    told = "On the 6 labels that both held out, run0 predicts 5 and run1 6: 1 only the latter, 0 only the former."
    assert told in text_of(build_page(runs))
    write_json(runs[1] / "data.json", {"used": {"labelled": [{"file": f"{i}.png", "label": "ant"} for i in range(4)]}})
    assert "a better run can show a lower figure" not in text_of(build_page(runs))


@pytest.mark.usefixtures("undrawn")
def test_the_table_of_classes_adds_up(tmp_path: Path) -> None:
    rows = [label(f"{i}.png", "ant", 0.99, triage="unchecked") for i in range(7)]
    rows += [label(f"a{i}.png", "ant", 0.99) for i in range(3)]
    rows += [label("r.png", "bee", 0.5, triage="review", review_rank="1")]
    run = write_run(tmp_path / "unchecked", NAMES, rows, truth=False, test=False)
    page = build_page([run])
    table = page[page.index('id="classes1"') :].partition("</table>")[0]
    heading = re.findall(r'<th scope="col">([^<]*)</th>', table)
    assert heading == ["class", "your labels", "labels made", "accepted", "unchecked", "to look at"]
    cells = [re.findall(r"<td>(\d+)</td>", row) for row in table.split("<tr>")[2:]]
    assert cells == [["0", "10", "3", "7", "0"], ["0", "1", "0", "0", "1"]]
    plain = write_run(tmp_path / "checked", NAMES, [r | {"triage": "accept"} for r in rows], truth=False, test=False)
    assert '<th scope="col">unchecked</th>' not in build_page([plain])  # where there are none
