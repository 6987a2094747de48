"""What the command line sets up before it imports anything large, and how many threads small heads get."""

import gc
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from protocon.__main__ import collect_seldom, keeps_encoder, start_no_blas_threads
from protocon.base.threads import one_thread


def test_garbage_is_looked_for_seldom_but_is_looked_for() -> None:
    before = gc.get_threshold()
    try:
        collect_seldom()
        assert gc.get_threshold()[0] >= 100 * 700
        assert gc.isenabled()
    finally:
        gc.set_threshold(*before)


@pytest.mark.parametrize(("there", "left"), [("", "True"), ("sys.modules['triton'] = sys; ", "False")])
def test_nothing_is_looked_for_when_the_process_ends_unless_triton_minds(there: str, left: str) -> None:
    program = "import atexit, gc, sys; atexit.register(lambda: print(gc.get_freeze_count() > 0)); "
    program += f"from protocon.__main__ import main; {there}sys.argv = ['protocon', '--version']; main()"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.split()[-1] == left


def test_only_runs_that_keep_their_encoder_are_not_started_again(tmp_path: Path) -> None:
    photos = str(tmp_path)
    assert keeps_encoder(["train", photos, "--labels", "labels.csv"])
    assert keeps_encoder(["compare", photos, "--frozen"])
    assert not keeps_encoder(["train", photos, "--labels", "labels.csv", "--from-scratch"])
    assert not keeps_encoder(["train", "--data", "digits"])
    assert not keeps_encoder(["train", photos + "/missing"])
    assert not keeps_encoder([])


def test_blas_starts_no_threads_for_heads_unless_the_user_says_how_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heads = ["train", str(tmp_path), "--labels", "labels.csv"]
    for before, arguments, after in (
        (None, heads, "1"),
        ("2", heads, "2"),
        (None, [*heads, "--from-scratch"], None),
        (None, ["compare", str(tmp_path), "--frozen"], None),
    ):
        monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
        if before:
            monkeypatch.setenv("OPENBLAS_NUM_THREADS", before)
        start_no_blas_threads(arguments)
        assert os.environ.get("OPENBLAS_NUM_THREADS") == after
        monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)


@pytest.mark.parametrize(("wanted", "inside"), [(True, 1), (False, 3)])
def test_threads_are_as_before_after_one_thread(wanted: bool, inside: int) -> None:
    before, seen = torch.get_num_threads(), []

    def fail() -> None:
        with one_thread(wanted):
            seen.append(torch.get_num_threads())
            raise ZeroDivisionError

    try:
        torch.set_num_threads(3)
        with pytest.raises(ZeroDivisionError):
            fail()
        assert [*seen, torch.get_num_threads()] == [inside, 3]
    finally:
        torch.set_num_threads(before)
