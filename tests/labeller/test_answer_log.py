"""The log on disk: nothing that was acknowledged is lost, nothing that was not counts."""

import errno
import os
from pathlib import Path

import pytest

from protocon.data.labels.answers import Entry, ImageRef
from protocon.errors import RunError
from protocon.labeller.answer_log import AnswerLog, NotSavedError


def entry(number: int) -> Entry:
    ref = ImageRef(f"{number}.png", "0" * 64, 3)
    return Entry(f"key-{number}", "2026-01-01", "me", "label", (ref,), class_id="c1", name="cat", why="pick")


def test_lines_are_there_after_every_append(tmp_path: Path) -> None:
    with AnswerLog(tmp_path / "log") as log:
        for number in range(3):
            log.append(entry(number))
            assert (tmp_path / "log").read_text().splitlines() == [entry(n).line() for n in range(number + 1)]
    with AnswerLog(tmp_path / "log") as log:
        assert log.entries == [entry(n) for n in range(3)]


def test_a_key_counts_once(tmp_path: Path) -> None:
    with AnswerLog(tmp_path / "log") as log:
        log.append(entry(0))
        log.append(entry(0))
        assert len(log.entries) == 1
    assert len((tmp_path / "log").read_text().splitlines()) == 1


@pytest.mark.parametrize("written", [0, 1, 40])
def test_a_full_disk_refuses_the_answer_and_leaves_the_file_as_it_was(tmp_path: Path, written: int) -> None:
    calls = []

    def full(handle: int, content: bytes) -> int:
        calls.append(len(content))
        if len(calls) > 1 or not written:
            raise OSError(errno.ENOSPC, "No space left on device")
        return os.write(handle, content[:written])

    with AnswerLog(tmp_path / "log") as log:
        log.append(entry(0))
        before = (tmp_path / "log").read_bytes()
        with pytest.raises(NotSavedError, match="not saved"):
            log.append(entry(1), write=full)
        assert (tmp_path / "log").read_bytes() == before
        assert log.entries == [entry(0)]
        log.append(entry(1))  # room was made
    with AnswerLog(tmp_path / "log") as log:
        assert log.entries == [entry(0), entry(1)]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_disk_that_is_really_full(tmp_path: Path) -> None:
    (tmp_path / "log").symlink_to("/dev/full")
    handle = os.open("/dev/full", os.O_WRONLY)
    try:
        with AnswerLog(tmp_path / "real") as log:
            with pytest.raises(NotSavedError):
                log.append(entry(0), write=lambda _, content: os.write(handle, content))
            assert log.entries == []
    finally:
        os.close(handle)


def test_a_torn_line_is_left_and_the_next_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(entry(0).line().encode() + b"\n" + entry(1).line().encode()[:50])
    with AnswerLog(path) as log:
        assert log.entries == [entry(0)]
        assert len(log.problems) == 1
        log.append(entry(2))
    with AnswerLog(path) as log:
        assert log.entries == [entry(0), entry(2)]


def test_two_programs_cannot_write_one_log(tmp_path: Path) -> None:
    with AnswerLog(tmp_path / "log"), pytest.raises(RunError, match="in use"):
        AnswerLog(tmp_path / "log")
    AnswerLog(tmp_path / "log").close()
