"""Cells of the paper's tables, run for two steps on small data of the right layout; killed, resumed, tabulated."""

import json
import signal
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from protocon.errors import ConfigError
from protocon.paper.paper_cells import paper_cells
from protocon.reproduce.availability import missing_part
from protocon.reproduce.progress_table import Measured
from protocon.reproduce.reproduce_run import Reproduction
from tests.engine.zygote import Zygote
from tests.reproduce.small_cells import changes, small_reproduction
from tests.test_docs_examples import ROOT

CASES = (
    "table1/cifar10-40/protocon",
    "table1/cifar100-200/comatch",
    "table1/mini-imagenet-400/simmatch",
    "table2/sketch-690/debiaspl",
    "table3/imagenet-1/protocon-eman",
    "table3/imagenet-10/paws",
    "table3/imagenet-0.2/mpl",
    "table3/imagenet-1/simclr",
    "moderate/mini-imagenet-2500/fixmatch",
    "ablations/cifar10-80/no-lc-lp",
)
"""A cell of each table and data set, and of each method that is alone in its kind."""
EVERY = ROOT / "benchmarks" / "results" / "every_cell.json"


@pytest.mark.parametrize("name", CASES)
def test_a_recipe_runs_two_steps_on_data_of_its_layout(name: str, tmp_path: Path) -> None:
    cell = paper_cells()[name]
    (found,) = small_reproduction(name, tmp_path / "data", tmp_path / "out").run(Console(quiet=True))
    assert found.state == "finished"
    run = tmp_path / "out" / "cells" / f"{cell.column}-{cell.row}-seed0"
    result = json.loads((run / "result.json").read_text())
    assert result["steps"] == 2
    assert result["method"] == cell.method.method
    text = (tmp_path / "out" / "table.md").read_text()
    assert "Not the paper's recipes" in text
    assert f"| {name} |" in text


def test_every_cell_has_run_two_steps_with_its_recipe_of_today() -> None:
    """The runs are those of `python -m benchmarks.every_cell`; a cell whose small form changes is to be run again."""
    found = json.loads(EVERY.read_text(encoding="utf-8"))
    assert list(found) == list(paper_cells())
    for name, run in found.items():
        cell = paper_cells()[name]
        assert (run["state"], run["steps"], run["finite"]) == ("finished", 2, True), name
        assert run["method"] == cell.method.method, name
        assert run["losses"], name
        assert run["changes"] == changes(cell), name


def reproduce_small(folder: Path) -> bytes:
    """A cell with two seeds, as a process of its own can be asked to do it; the table that it leaves."""
    small = small_reproduction("table1/cifar10-20/protocon", folder / "data", folder / "out")
    more = [*small.overrides, "data.image_size=8", "total_steps=8"]
    replace(small, seeds=2, overrides=more).run(Console(quiet=True))
    return (folder / "out" / "table.json").read_bytes()


def reproduce_in(folder: str) -> None:
    """For a process of its own."""
    reproduce_small(Path(folder))


def test_a_killed_reproduction_continues_and_gives_the_same_table(zygote: Zygote, tmp_path: Path) -> None:
    second = tmp_path / "killed/out/cells/cifar10-20-protocon-seed1/metrics.jsonl"
    ended = zygote.call(f"{__name__}:reproduce_in", str(tmp_path / "killed"), once=second, lines=3)
    assert ended.code == -signal.SIGKILL, ended.output
    partial = json.loads((tmp_path / "killed/out/table.json").read_text())["cells"][0]
    assert (partial["n"], partial["within"], partial["state"]) == (1, None, "1 of 2 runs")
    cells = tmp_path / "killed/out/cells"
    finished = (cells / "cifar10-20-protocon-seed0/result.json").stat().st_mtime_ns
    spent = (second.parent / "timings.jsonl").read_text().splitlines()
    whole = reproduce_small(tmp_path / "whole")
    assert reproduce_small(tmp_path / "killed") == whole
    # It went on, rather than begin again: the finished run is as it was, and no time was measured anew.
    assert sorted(run.name for run in cells.iterdir()) == [f"cifar10-20-protocon-seed{seed}" for seed in (0, 1)]
    assert (cells / "cifar10-20-protocon-seed0/result.json").stat().st_mtime_ns == finished
    assert (second.parent / "timings.jsonl").read_text().splitlines()[:2] == spent[:2]
    assert len(spent[:2]) == 2
    content = json.loads(whole)["cells"][0]
    assert (content["n"], content["paper"], content["paper_spread"]) == (2, 90.51, 4.02)
    assert content["difference"] == pytest.approx(content["mean"] - 90.51)
    assert content["within"] is False


def test_runs_with_other_settings_are_neither_counted_nor_continued(tmp_path: Path) -> None:
    small = small_reproduction("table1/cifar10-20/fixmatch", tmp_path / "data", tmp_path / "out")
    (done,) = small.run(Console(quiet=True))
    assert list(done.accuracies) == [0]
    table = (tmp_path / "out/table.md").read_text()
    longer = replace(small, overrides=[*small.overrides, "total_steps=3"])
    for asked in (longer, replace(small, overrides=[])):  # --list, with other changes or with none
        found = asked.measured(done.cell)
        assert (found.accuracies, found.state) == ({}, "1 with other settings")
    with pytest.raises(ConfigError, match=r"cells/cifar10-20-fixmatch-seed0 was begun with .*\n  .*total_steps: 2 → 3"):
        longer.run(Console(quiet=True))
    assert (tmp_path / "out/table.md").read_text() == table
    moved = replace(small, roots={}, overrides=[*small.overrides, "workers=1", "checkpoint_every=5"])
    assert moved.measured(done.cell).accuracies == done.accuracies  # where things are makes no other run


def test_cells_that_cannot_be_run_say_why_and_the_others_are_not_held_up(tmp_path: Path) -> None:
    found = Reproduction("table3", tmp_path).run(Console(quiet=True))
    states = {one.cell.name: one.state for one in found}
    assert len(states) == 42
    assert states["table3/imagenet-1/protocon"] == "needs the data (--root imagenet=FOLDER)"
    assert states["table3/imagenet-1/protocon-eman"].endswith("(--weights protocon-eman=FILE)")
    for name, state in states.items():
        if missing_part(paper_cells()[name]) is not None:
            assert state.startswith("not available")


def test_a_wrong_cell_or_table_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="did you mean cifar10-40/protocon"):
        Reproduction("table1", tmp_path, cells=["cifar10-41/protocon"]).chosen()
    with pytest.raises(ConfigError, match="table1"):
        Reproduction("tabel1", tmp_path).chosen()
    assert len(Reproduction("table1", tmp_path, cells=["cifar10-*/*"]).chosen()) == 18


@pytest.mark.parametrize(("measured", "within"), [((94.0, 96.0), True), ((90.0, 92.0), False), ((95.0,), None)])
def test_within_is_told_when_all_runs_are_there(measured: tuple[float, ...], within: bool | None) -> None:
    cell = paper_cells()["table1/cifar10-40/protocon"]  # 95.20 ± 1.8
    assert Measured(cell, dict(enumerate(measured)), seeds=2).content()["within"] is within
