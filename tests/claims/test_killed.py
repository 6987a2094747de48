"""A claim whose process is killed continues with the same command and gives the same result."""

import json
import multiprocessing
import os
import signal
import time
from pathlib import Path
from typing import Any

from rich.console import Console

from protocon.claims.campaign import Campaign
from protocon.claims.field import field_named

QUICK = ("optim.batch_size=64",)


def campaign(folder: Path) -> Campaign:
    small = field_named("digits", seeds=2, epochs=3, train=200, test=50)
    return Campaign(field=small, out=folder, overrides=QUICK, command="as tested")


def run(folder: Path) -> list[dict[str, Any]]:
    return list(campaign(folder).run(["start"], Console(quiet=True)))


def finished(folder: Path) -> list[Path]:
    return sorted(folder.glob("plain/cells/*/result.json"))


def test_a_killed_claim_continues_and_gives_the_same_table_and_figure(tmp_path: Path) -> None:
    # Not a fork: this process may have computed with several threads, which a fork of it would wait for.
    child = multiprocessing.get_context("spawn").Process(target=run, args=(tmp_path / "killed",))
    child.start()
    end = time.monotonic() + 200
    while not finished(tmp_path / "killed"):
        assert time.monotonic() < end
        time.sleep(0.01)
    assert child.pid is not None
    os.kill(child.pid, signal.SIGKILL)
    child.join()
    before = {file: file.stat().st_mtime_ns for file in finished(tmp_path / "killed")}
    assert 1 <= len(before) < 4
    whole, continued = run(tmp_path / "whole"), run(tmp_path / "killed")
    assert {file: file.stat().st_mtime_ns for file in before} == before  # finished runs are not repeated
    assert whole == continued
    assert [one["n"] for one in whole[0]["effects"]] == [2]
    for name in ("start-digits.json", "start-digits.svg"):
        assert (tmp_path / "whole/results" / name).read_bytes() == (tmp_path / "killed/results" / name).read_bytes()
    stored = json.loads((tmp_path / "whole/results/start-digits.json").read_text())
    assert len(stored["runs"]) == 2
    assert set(stored["runs"][0]["accuracy"]) == {"0", "1"}
