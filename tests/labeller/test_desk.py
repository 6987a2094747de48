"""Nothing is lost, and no answer passes to another image, whatever happens meanwhile."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from protocon.data.labels.label_file import read_label_table
from protocon.errors import ConfigError, RunError
from protocon.labeller.answer_log import NotSavedError
from protocon.labeller.opinion import SURE, Prepared, prepared
from protocon.labeller.photos import Photos
from protocon.labeller.server import Labeller
from protocon.labeller.sight import FIRST, Sight
from protocon.labeller.worker import Worker
from tests.commands import run_command
from tests.engine.photos import install, make_package
from tests.labeller.folders import SIDE, Client, colour_encoder, labeller, make_folder, wait


def csv_rows(root: Path) -> dict[str, str]:
    return {row.file: row.label for row in read_label_table(root / "labels.csv").rows if row.label}


def test_a_whole_session_over_http(tmp_path: Path) -> None:
    truth = make_folder(tmp_path / "photos", 60)
    with labeller(tmp_path / "photos", tmp_path) as server:
        client = Client(server.url)
        item = client.next()
        whys, names = [], set()
        for _ in range(20):
            whys.append(item["why"])
            assert item["name"] not in names  # no image is asked about twice
            names.add(item["name"])
            assert item["why"] == "pick" or not (item["ranking"] or item["neighbours"])  # no hints to who audits it
            item = client.answer(item, name=truth[item["name"]])["next"]
        assert [place for place, why in enumerate(whys, start=1) if why == "audit"] == [5, 10, 15, 20]
        wait(lambda: not client.get("/api/status")["learning"])
        status = client.get("/api/status")
        assert status["labels"] == 20
        assert {c["name"] for c in status["classes"]} == {"red", "green", "blue"}
        assert sum(c["share"] for c in status["classes"]) == pytest.approx(1)
        assert (status["audit"]["asked"], status["audit"]["right"]) == (4, 4)
        assert 0 < status["coverage"] <= 1
        doubtful = client.get("/api/browse?view=doubtful")["images"]
        assert len(doubtful) == 40
        assert status["unsure"] == sum(i["sure"] < SURE for i in doubtful)  # the work that is left
        assert all(truth[i["name"]] == _name(status, i["guess"]) for i in doubtful)
        assert doubtful == sorted(doubtful, key=lambda i: i["sure"])
        blue = next(c["id"] for c in status["classes"] if c["name"] == "blue")
        assert {truth[i["name"]] for i in client.get(f"/api/browse?view=class&class_id={blue}")["images"]} == {"blue"}
    assert csv_rows(tmp_path / "photos") == {name: truth[name] for name in names}


def _name(status: dict[str, Any], class_id: str) -> str:
    return str(next(c["name"] for c in status["classes"] if c["id"] == class_id))


def test_a_group_is_accepted_at_once_and_undone_at_once(tmp_path: Path) -> None:
    truth = make_folder(tmp_path / "photos", 60)
    with labeller(tmp_path / "photos", tmp_path) as server:
        client = Client(server.url)
        item = client.next()
        for _ in range(6):
            item = client.answer(item, name=truth[item["name"]])["next"]
        wait(lambda: not client.get("/api/status")["learning"])
        group = client.get("/api/grid")["groups"][0]
        assert len({truth[image["name"]] for image in group["images"]}) == 1
        chosen = [{"number": i["number"], "stamp": i["stamp"]} for i in group["images"]]
        body = {"do": "label", "images": chosen, "class_id": group["class_id"], "why": "grid"}
        client.post("/api/answer", body)
        assert client.get("/api/status")["labels"] == 6 + len(chosen)
        assert len(chosen) > 10
        assert client.post("/api/undo", {})["undone"]["count"] == len(chosen)
        assert client.get("/api/status")["labels"] == 6


def test_undo_brings_the_image_back_and_redo_is_answering_again(tmp_path: Path) -> None:
    make_folder(tmp_path / "photos", 12)
    with labeller(tmp_path / "photos", tmp_path) as server:
        client = Client(server.url)
        first = client.next()
        client.answer(first, name="cat")
        undone = client.post("/api/undo", {})
        assert undone["undone"]["name"] == "cat"
        assert undone["next"]["number"] == first["number"]
        assert undone["classes"] == []
        assert client.post("/api/undo", {})["undone"] is None


def test_renaming_and_merging_are_undone_like_answers(tmp_path: Path) -> None:
    make_folder(tmp_path / "photos", 12)
    with labeller(tmp_path / "photos", tmp_path) as server:
        client = Client(server.url)
        item = client.next()
        item = client.answer(item, name="kitten")["next"]
        classes = client.answer(item, name="cat")["classes"]
        kitten, cat = (c["id"] for c in classes)
        client.post("/api/class", {"do": "rename", "class_id": kitten, "name": "cat"}, expect=422)
        client.post("/api/class", {"do": "rename", "class_id": kitten, "name": "kittens"})
        client.post("/api/class", {"do": "merge", "class_id": kitten, "into": cat})
        assert set(server.labels().values()) == {"cat"}
        rename = next(e for e in client.get("/api/history")["entries"] if e["do"] == "rename")
        client.post("/api/undo", {})
        assert sorted(server.labels().values()) == ["cat", "kittens"]
        client.post("/api/undo", {"of": rename["key"]})
        assert sorted(server.labels().values()) == ["cat", "kitten"]


def test_an_answer_that_is_sent_twice_counts_once(tmp_path: Path) -> None:
    make_folder(tmp_path / "photos", 12)
    with labeller(tmp_path / "photos", tmp_path) as server:
        client = Client(server.url)
        item = client.next()
        for _ in range(3):
            client.answer(item, name="cat", key="the-same-key")
        assert len((tmp_path / "photos" / "labels.jsonl").read_text().splitlines()) == 1


def test_two_tabs_get_different_images_and_the_later_answer_counts(tmp_path: Path) -> None:
    make_folder(tmp_path / "photos", 12)
    with labeller(tmp_path / "photos", tmp_path) as server:
        client = Client(server.url)
        one, two = client.next("tab-1"), client.next("tab-2")
        assert one["number"] != two["number"]
        assert client.next("tab-1")["number"] == one["number"]  # a tab that is loaded again
        client.answer(one, name="cat", tab="tab-1")
        client.answer(one, name="dog", tab="tab-2")
        assert list(server.labels().values()) == ["dog"]
        assert len(server.log.entries) == 2


def test_a_full_disk_refuses_the_answer_and_the_same_answer_succeeds_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_folder(tmp_path / "photos", 12)
    with labeller(tmp_path / "photos", tmp_path) as server:
        client = Client(server.url)
        item = client.next()
        append = server.log.append

        def full(*_: Any, **__: Any) -> Any:
            raise NotSavedError("the answer is not saved: No space left on device")

        monkeypatch.setattr(server.log, "append", full)
        assert "not saved" in client.answer(item, name="cat", key="the-key-1", expect=507)["error"]
        assert server.labels() == {}
        monkeypatch.setattr(server.log, "append", append)
        client.answer(item, name="cat", key="the-key-1")
        assert list(server.labels().values()) == ["cat"]


def test_files_that_come_and_go_take_their_own_answers_along(tmp_path: Path) -> None:
    root = tmp_path / "photos"
    truth = make_folder(root, 12)
    with labeller(root, tmp_path) as server:
        client = Client(server.url)
        item = client.next()
        for _ in range(6):
            item = client.answer(item, name=truth[item["name"]])["next"]
        labelled = list(server.labels())
        (root / labelled[0]).unlink()
        (root / labelled[1]).rename(root / "moved.png")
        (root / labelled[2]).write_bytes((root / labelled[3]).read_bytes() + b" ")  # another picture of that name
        make_folder(root, 6, first=50)
        wait(lambda: client.get("/api/status")["images"] == 12 - 1 + 6)
        labels = server.labels()
        assert labels == {"moved.png": truth[labelled[1]], **{name: truth[name] for name in labelled[3:]}}
        wait(lambda: client.get("/api/status")["features"] == 17)
        client.answer(item | {"stamp": "0" * 16}, name="red", expect=409)
    with labeller(root, tmp_path) as server:  # the same after a restart
        assert server.labels() == labels
        assert len(server.log.entries) == 6


def test_an_image_that_vanishes_before_the_answer_keeps_it(tmp_path: Path) -> None:
    root = tmp_path / "photos"
    make_folder(root, 12)
    with labeller(root, tmp_path) as server:
        client = Client(server.url)
        item = client.next()
        content = (root / item["name"]).read_bytes()
        (root / item["name"]).unlink()
        client.answer(item, name="cat")
        (root / "back.png").write_bytes(content)
        wait(lambda: server.labels() == {"back.png": "cat"})


def test_labels_that_were_there_are_taken_over_and_an_edited_file_too(tmp_path: Path) -> None:
    root = tmp_path / "photos"
    truth = make_folder(root, 12)
    names = list(truth)[:4]
    rows = "".join(f"{name},{truth[name]},my note\n" for name in names)
    (root / "labels.csv").write_text("file,label,remark\n" + rows + "gone.png,red,\n", encoding="utf-8")
    with labeller(root, tmp_path) as server:
        assert server.labels() == {name: truth[name] for name in names}
        wait((root / "labels.before-1.csv").exists)
        assert "my note" in (root / "labels.before-1.csv").read_text()
        assert any("1 rows of labels.csv" in remark for remark in server.desk.remarks)
    text = (root / "labels.csv").read_text(encoding="utf-8")
    (root / "labels.csv").write_text(text.replace(f"{names[0]},{truth[names[0]]}", f"{names[0]},purple"))
    with labeller(root, tmp_path) as server:
        assert server.labels() == {name: truth[name] for name in names} | {names[0]: "purple"}
        assert server.desk.undo(key="undo-the-edit") is not None
        assert server.labels()[names[0]] == truth[names[0]]


def test_a_stale_labels_file_of_our_own_is_no_edit(tmp_path: Path) -> None:
    """Killed between the log and the file: the log has more, and is right."""
    root = tmp_path / "photos"
    make_folder(root, 12)
    with labeller(root, tmp_path) as server:
        client = Client(server.url)
        item = client.next()
        client.answer(item, name="cat")
    stale = (root / "labels.csv").read_bytes()
    ours = (root / ".labels.csv.ours").read_bytes()
    with labeller(root, tmp_path) as server:
        Client(server.url).answer(item | {"why": "review"}, name="dog")
    (root / "labels.csv").write_bytes(stale)
    (root / ".labels.csv.ours").write_bytes(ours)
    with labeller(root, tmp_path) as server:
        assert list(server.labels().values()) == ["dog"]


def test_the_command_ends_with_what_comes_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "my photos"
    make_folder(root, 3)
    monkeypatch.setattr(Labeller, "serve", lambda server: server.start().stop())  # as if it had been ended by Ctrl-C
    done = run_command(monkeypatch, capsys, "label", str(root), "--no-browser", "--cache", str(tmp_path / "cache"))
    assert done.code == 0, done.err
    assert done.err.endswith(f"To train on them:\n  protocon train '{root}'\n")


def test_one_folder_has_one_server(tmp_path: Path) -> None:
    make_folder(tmp_path / "photos", 3)
    with labeller(tmp_path / "photos", tmp_path), pytest.raises(RunError, match="in use"):
        labeller(tmp_path / "photos", tmp_path)


def test_a_restart_has_the_same_address(tmp_path: Path) -> None:
    make_folder(tmp_path / "photos", 3)
    with labeller(tmp_path / "photos", tmp_path) as server:
        url = server.url
    with labeller(tmp_path / "photos", tmp_path) as server:
        assert server.url == url
    place = next((tmp_path / "cache").glob("*.address"))
    assert place.stat().st_mode & 0o077 == 0


def test_class_names_are_one_whatever_their_capitals(tmp_path: Path) -> None:
    make_folder(tmp_path / "photos", 12)
    with labeller(tmp_path / "photos", tmp_path, classes=["Cat"]) as server:
        assert server.desk.add_class(" cat ", key="another-key") == "c1"
        with pytest.raises(ConfigError, match="cannot be a class name"):
            server.desk.add_class("-1", key="a-third-key")
        assert list(server.desk.answers.classes.values()) == ["Cat"]


_SERVE = """
    import sys
    from pathlib import Path
    from tests.labeller.folders import labeller
    server = labeller(Path(sys.argv[1]) / "photos", Path(sys.argv[1]))
    print(server.url, flush=True)
    server.serve()
"""


def test_kill_minus_nine_loses_nothing(tmp_path: Path) -> None:
    root = tmp_path / "photos"
    truth = make_folder(root, 30)
    command = [sys.executable, "-c", textwrap.dedent(_SERVE), str(tmp_path)]
    saved: dict[str, str] = {}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2])
    try:
        assert process.stdout is not None
        client = Client(process.stdout.readline().strip())
        item = client.next()
        for _ in range(7):
            name = item["name"]
            item = client.answer(item, name=truth[name])["next"]
            saved[name] = truth[name]
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close() if process.stdout else None
    with (root / "labels.jsonl").open("ab") as log:
        log.write(b'{"key": "torn')
    with labeller(root, tmp_path) as server:
        assert server.labels() == saved
        assert any("not an entry" in remark for remark in server.desk.remarks)
        Client(server.url).answer(Client(server.url).next(), name="red")
    assert len(csv_rows(root)) == 8


def test_features_are_computed_once(tmp_path: Path) -> None:
    root = tmp_path / "photos"
    make_folder(root, 12)
    with labeller(root, tmp_path) as server:
        wait(lambda: server.desk.features_done == 12)
    tables = {p: p.stat().st_mtime_ns for p in (tmp_path / "cache").rglob("features.npy")}
    make_folder(root, 4, first=70)
    with labeller(root, tmp_path) as server:
        wait(lambda: server.desk.features_done == 16)
        numbers = np.concatenate(server.desk.thinker.numbers)
        assert sorted(numbers.tolist()) == list(range(16))
    after = {p: p.stat().st_mtime_ns for p in (tmp_path / "cache").rglob("features.npy")}
    assert len(after) == len(tables) + 1  # the new files only
    assert {p: t for p, t in after.items() if p in tables} == tables


def test_labelling_begins_with_the_first_hundred_images_of_a_large_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "photos"
    make_folder(root, 230)
    photos = Photos(root)

    def look() -> list[np.ndarray]:
        delivered: list[np.ndarray] = []
        sight = Sight(photos, colour_encoder, image_size=SIDE, cache=tmp_path / "cache")
        sight.look(lambda numbers, features: delivered.append(numbers[: len(features)]))
        return delivered

    first, *rest = look()
    assert len(first) == FIRST < 100
    assert np.ptp(first) > 220  # from all over the folder
    assert sorted(np.concatenate([first, *rest]).tolist()) == list(range(230))
    tables = {p: p.stat().st_mtime_ns for p in (tmp_path / "cache").rglob("features.npy")}
    (again,) = look()  # what is in the cache comes at once
    assert sorted(again.tolist()) == list(range(230))
    monkeypatch.setattr("protocon.labeller.sight.TOGETHER", 200)  # unless it is much
    assert [len(numbers) for numbers in look()] == [FIRST, 230 - FIRST]
    assert {p: p.stat().st_mtime_ns for p in (tmp_path / "cache").rglob("features.npy")} == tables


def test_the_model_learns_while_more_features_are_taken_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "photos"
    truth = make_folder(root, 230)
    free, calls = threading.Event(), []

    def slowly(*arrived: Any) -> Prepared:
        calls.append(len(arrived[0]))
        if len(calls) > 1:
            assert free.wait(20)
        return prepared(*arrived)

    deliver = Worker._deliver

    def in_turn(worker: Worker, numbers: np.ndarray, features: np.ndarray) -> None:
        deliver(worker, numbers, features)
        wait(lambda: bool(calls))  # the first hundred are taken in before the others arrive

    monkeypatch.setattr("protocon.labeller.worker.prepared", slowly)
    monkeypatch.setattr(Worker, "_deliver", in_turn)
    with labeller(root, tmp_path) as server:
        client = Client(server.url)
        wait(lambda: len(calls) == 2)  # all have arrived, a part of them is in use
        item = client.next()
        for _ in range(6):
            item = client.answer(item, name=truth[item["name"]])["next"]
        wait(lambda: not client.get("/api/status")["learning"])
        assert len(server.desk.opinion.numbers) < 230
        assert server.desk.opinion.known.answers == 6
        time.sleep(0.5)  # for as long as it takes, not all images have been seen
        status = client.get("/api/status")
        assert not status["whole"]
        assert not status["advice"]["signs"][0]["met"]
        free.set()
        wait(lambda: len(server.desk.opinion.numbers) == 230)
        wait(lambda: client.get("/api/status")["whole"])
        assert client.get("/api/status")["advice"]["signs"][0]["met"]
        assert server.desk.opinion.known.answers == 6


def test_features_that_cannot_be_taken_in_are_told_and_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_folder(tmp_path / "photos", 12)
    calls = []

    def once_in_vain(*arrived: Any) -> Prepared:
        calls.append(len(arrived[0]))
        if len(calls) == 1:
            raise MemoryError("not enough of it")
        return prepared(*arrived)

    monkeypatch.setattr("protocon.labeller.worker.prepared", once_in_vain)
    monkeypatch.setattr("protocon.labeller.worker._RETRY_SECONDS", 0.5)
    with labeller(tmp_path / "photos", tmp_path) as server:
        wait(lambda: "not enough of it" in str(server.desk.trouble))
        wait(lambda: len(server.desk.opinion.numbers) == 12)


def test_a_damaged_image_holds_nobody_up(tmp_path: Path) -> None:
    root = tmp_path / "photos"
    truth = make_folder(root, 12)
    (root / "broken.png").write_bytes(b"no picture at all")
    with labeller(root, tmp_path) as server:
        client = Client(server.url)
        seen = []
        item: dict[str, Any] | None = client.next()
        while item is not None:
            seen.append(item["name"])
            do: dict[str, Any] = {"do": "skip"} if item["name"] == "broken.png" else {"name": truth[item["name"]]}
            item = client.answer(item, **do)["next"]
        assert sorted(seen) == sorted([*truth, "broken.png"])
        assert json.loads((root / "labels.jsonl").read_text().splitlines()[0])["who"] == "tester"


def test_an_encoder_that_cannot_be_loaded_leaves_labelling_to_continue(tmp_path: Path) -> None:
    make_folder(tmp_path / "photos", 6)

    def broken() -> Any:
        raise ConfigError("no weights are installed")

    with Labeller(tmp_path / "photos", cache=tmp_path / "cache", encoder=(broken, 16)) as server:
        client = Client(server.url)
        client.answer(client.next(), name="cat")
        assert "no weights" in client.get("/api/status")["trouble"]
        assert list(server.labels().values()) == ["cat"]


def test_in_a_notebook_the_page_is_in_a_frame(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import protocon

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    make_package(tmp_path / "packages")
    install(tmp_path / "packages", monkeypatch)
    make_folder(tmp_path / "photos", 6)
    page = protocon.label(tmp_path / "photos", classes=["cat", "dog"])
    try:
        assert page.url in page._repr_html_()
        client = Client(page.url)
        policy = client.raw("GET", f"/?token={client.token}")[2]["content-security-policy"]
        assert "frame-ancestors http://localhost:*" in policy
        assert [c["name"] for c in client.get("/api/status")["classes"]] == ["cat", "dog"]
        assert page.labels() == {}
    finally:
        page.stop()
