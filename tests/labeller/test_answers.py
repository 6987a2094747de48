"""What a log comes to: any sequence of lines, undone in any order, cut short anywhere."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocon.data.labels.answers import Entry, ImageRef, parse_lines, reduce
from protocon.data.labels.label_file import read_label_table

IMAGES = [ImageRef(f"{n}.png", f"{n:064}", n) for n in range(4)]
CLASSES = ("c1", "c2", "c3")


def entry(number: int, do: str, **values: object) -> Entry:
    return Entry(f"key-{number:04}", "2026-01-01T00:00:00", "me", do, **values)  # type: ignore[arg-type]


def label(number: int, image: int, class_id: str, name: str, why: str = "pick") -> Entry:
    return entry(number, "label", images=(IMAGES[image],), class_id=class_id, name=name, why=why)


@st.composite
def logs(draw: st.DrawFn) -> list[Entry]:
    """Sequences that a desk could have written, and some that it could not."""
    found: list[Entry] = []
    for number in range(draw(st.integers(0, 25))):
        do = draw(st.sampled_from(["label", "label", "label", "none", "skip", "class", "rename", "merge", "undo"]))
        one = draw(st.sampled_from(CLASSES))
        images = tuple(draw(st.lists(st.sampled_from(IMAGES), min_size=1, max_size=3, unique=True)))
        why = draw(st.sampled_from(["pick", "audit", "grid"]))
        if do in ("label", "none", "skip"):
            values = {"images": images, "why": why}
            found.append(entry(number, do, **values, **({"class_id": one, "name": f"n{one}"} if do == "label" else {})))
        elif do == "undo":
            of = f"key-{draw(st.integers(0, max(0, number - 1))):04}"
            found.append(entry(number, "undo", of=of))
        elif do == "merge":
            found.append(entry(number, "merge", class_id=one, into=draw(st.sampled_from(CLASSES))))
        else:
            found.append(entry(number, do, class_id=one, name=draw(st.sampled_from(["nc1", "x", "y"]))))
    return found


def facts(entries: Sequence[Entry]) -> tuple[object, ...]:
    answers = reduce(entries)
    return answers.classes, answers.images, answers.audited


@settings(max_examples=80, deadline=None)
@given(logs())
def test_any_log_comes_to_labels_of_classes_that_are_there(entries: list[Entry]) -> None:
    answers = reduce(entries)
    assert len(set(answers.classes.values())) == len(answers.classes)
    for image, answer in answers.images.items():
        assert answer.do in ("label", "none", "skip")
        assert (answers.label(image) is not None) == (answer.do == "label")
    assert answers.audited <= answers.images.keys()


@settings(max_examples=80, deadline=None)
@given(logs())
def test_undo_restores_what_was_before_and_undoing_the_undo_what_was_after(entries: list[Entry]) -> None:
    if not entries or entries[-1].do == "undo":
        return
    before, after = facts(entries[:-1]), facts(entries)
    undone = [*entries, entry(900, "undo", of=entries[-1].key)]
    assert facts(undone) == before
    assert facts([*undone, entry(901, "undo", of="key-0900")]) == after


@settings(max_examples=60, deadline=None)
@given(logs())
def test_lines_survive_writing_and_a_cut_loses_the_last_line_at_most(entries: list[Entry]) -> None:
    lines = [e.line() for e in entries]
    content = "".join(line + "\n" for line in lines).encode()
    assert parse_lines(content) == (entries, [])
    if lines:
        cut = len(content) - 1 - len(lines[-1]) // 2
        found, problems = parse_lines(content[:cut])
        assert found == entries[:-1]
        assert len(problems) == 1


def test_the_latest_answer_counts_and_a_skip_replaces_none() -> None:
    entries = [label(0, 0, "c1", "cat"), label(1, 0, "c2", "dog"), entry(2, "skip", images=(IMAGES[0],))]
    assert reduce(entries).label(IMAGES[0]) == "dog"
    assert reduce([*entries, entry(3, "none", images=(IMAGES[0],))]).label(IMAGES[0]) is None


def test_a_merge_undone_long_after_gives_each_image_its_class_back() -> None:
    entries = [
        label(0, 0, "c1", "kitten"),
        label(1, 1, "c2", "cat"),
        entry(2, "merge", class_id="c1", into="c2"),
        label(3, 2, "c2", "cat"),
    ]
    merged = reduce(entries)
    assert [merged.label(image) for image in IMAGES[:3]] == ["cat", "cat", "cat"]
    assert merged.classes == {"c2": "cat"}
    apart = reduce([*entries, entry(4, "undo", of="key-0002")])
    assert [apart.label(image) for image in IMAGES[:3]] == ["kitten", "cat", "cat"]


def test_a_rename_undone_long_after_gives_later_labels_the_old_name_too() -> None:
    entries = [label(0, 0, "c1", "cat"), entry(1, "rename", class_id="c1", name="cats"), label(2, 1, "c1", "cats")]
    assert reduce(entries).classes == {"c1": "cats"}
    undone = reduce([*entries, entry(3, "undo", of="key-0001")])
    assert [undone.label(image) for image in IMAGES[:2]] == ["cat", "cat"]


def test_a_class_vanishes_with_its_only_answer() -> None:
    assert reduce([label(0, 0, "c1", "cat"), entry(1, "undo", of="key-0000")]).classes == {}


def test_merges_in_a_circle_end() -> None:
    entries = [label(0, 0, "c1", "a"), label(1, 1, "c2", "b")]
    entries += [entry(2, "merge", class_id="c1", into="c2"), entry(3, "merge", class_id="c2", into="c1")]
    assert reduce(entries).classes == {"c2": "b"}


@pytest.mark.parametrize(
    "line",
    [
        b"[]", b"null", b'{"do": "label"}', b'{"key": "k", "do": "label", "class_id": "c1", "name": "x"}',
        b'{"key": "k", "do": "fly"}', b'{"key": 3, "do": "undo", "of": "x"}', b'{"key": "k", "do": "merge"}',
        b"\xff\xfe", b'{"key": "k", "do": "label", "images": 3}', b"[" * 100_000,
        b'{"key": "k", "do": "class", "class_id": "c1", "name": "\\ud800"}',
    ],
)  # fmt: skip
def test_a_line_that_is_no_entry_is_named_and_the_others_count(line: bytes) -> None:
    good = label(0, 0, "c1", "cat")
    entries, problems = parse_lines(line + b"\n" + good.line().encode() + b"\n")
    assert entries == [good]
    assert problems[0].startswith("line 1: not an entry")


def test_train_reads_the_log_and_no_label_passes_to_a_replaced_file(tmp_path: Path) -> None:
    import hashlib

    for name in ("a.png", "b.png"):
        (tmp_path / name).write_bytes(name.encode())
    refs = [ImageRef(name, hashlib.sha256(name.encode()).hexdigest(), 5) for name in ("a.png", "b.png")]
    log = tmp_path / "labels.jsonl"
    entries = [
        entry(n, "label", images=(ref,), class_id=f"c{n}", name=f"class {n}", why="pick") for n, ref in enumerate(refs)
    ]
    log.write_text("".join(e.line() + "\n" for e in entries), encoding="utf-8")
    assert [(row.file, row.label) for row in read_label_table(log).rows] == [("a.png", "class 0"), ("b.png", "class 1")]
    (tmp_path / "b.png").write_bytes(b"other")
    table = read_label_table(log)
    assert [(row.file, row.label) for row in table.rows] == [("a.png", "class 0")]
    assert "b.png has changed" in table.problems[0]
