"""A claim whose process is killed continues with the same command and gives the same result."""

import json
import multiprocessing
import signal
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from protocon.claims.campaign import Campaign
from protocon.claims.field import field_named
from protocon.compare import pool
from tests.engine.zygote import Zygote

QUICK = ("optim.batch_size=64", "run.checkpoint_every=1")


def campaign(folder: Path) -> Campaign:
    small = field_named("digits", seeds=2, epochs=3, train=200, test=50)
    return Campaign(field=small, out=folder, overrides=QUICK, command="as tested")


def run(folder: Path) -> list[dict[str, Any]]:
    return list(campaign(folder).run(["start"], Console(quiet=True)))


def run_in(folder: str) -> None:
    """For a process of its own, which has imported all that its cells need."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pool, "_context", lambda: multiprocessing.get_context("fork"))
        run(Path(folder))


def finished(folder: Path) -> list[Path]:
    return sorted(folder.glob("plain/cells/*/result.json"))


def test_a_killed_claim_continues_and_gives_the_same_table_and_figure(zygote: Zygote, tmp_path: Path) -> None:
    first = tmp_path / "killed" / "plain/cells/*/result.json"
    assert zygote.call(f"{__name__}:run_in", str(tmp_path / "killed"), once=first).code == -signal.SIGKILL
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


def test_a_run_that_a_killed_claim_had_begun_goes_on_where_it_was(zygote: Zygote, tmp_path: Path) -> None:
    begun = tmp_path / "killed" / "plain/cells/*/metrics.jsonl"
    ended = zygote.call(f"{__name__}:run_in", str(tmp_path / "killed"), once=begun, lines=2)
    assert ended.code == -signal.SIGKILL, ended.output
    cells = [file.parent for file in tmp_path.glob("killed/plain/cells/*/metrics.jsonl") if _lines(file)[1:]]
    spent = {cell / "timings.jsonl": _lines(cell / "timings.jsonl")[0] for cell in cells}
    assert spent
    assert len(finished(tmp_path / "killed")) < len(cells)  # some were begun, not finished
    run(tmp_path / "killed")
    assert {file: _lines(file)[0] for file in spent} == spent  # no time of a first epoch was measured anew
    assert len(finished(tmp_path / "killed")) == 4
    assert len(list(tmp_path.glob("killed/plain/cells/*/metrics.jsonl"))) == 4  # nor was a run begun beside another


def _lines(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8").splitlines()
