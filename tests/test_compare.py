"""`protocon compare`: real grids that fail, are killed, resume, grow and are refused."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from protocon.compare import grid
from protocon.compare.cells import Job, last_line
from protocon.compare.comparison import Comparison
from protocon.compare.grid import GRID_FILE, compare, default_workers
from protocon.compare.pool import _failure
from protocon.compare.request import Cell, Request, build_request
from protocon.compare.tables import accuracy_page, difference_page
from protocon.errors import DataError, RunError
from tests.commands import run_command

METHODS = "logistic-regression,protocon"
QUICK = ("data.image_size=8", "optim.epochs=4", "optim.batch_size=32", "run.tensorboard=false", "run.report=false")
ARGUMENTS = ("--methods", METHODS, "--labels-per-class", "2,4", "--seeds", "2", *QUICK)


def quick(*, methods: str = METHODS, overrides: tuple[str, ...] = QUICK, seeds: int = 2) -> Request:
    return build_request(methods=methods.split(","), labels_per_class=(2, 4), seeds=seeds, overrides=overrides)


def run_quietly(request: Request, out: Path) -> Comparison:
    return compare(request, out=out, workers=1, console=Console(quiet=True))


def accuracies(comparison: Comparison) -> dict[tuple[str, int, int], float | None]:
    return {(record.method, record.labels, record.seed): record.accuracy for record in comparison.records}


def times(out: Path) -> dict[str, int]:
    """When each result was written."""
    return {path.parent.name: path.stat().st_mtime_ns for path in (out / "cells").glob("*/result.json")}


def wait_for(true: Callable[[], bool]) -> None:
    end = time.monotonic() + 120  # a machine may be busy with other things
    while not true():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.01)


def living(session: int) -> list[str]:
    """Processes of a session that are not dead."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, own = stat.read_text().rpartition(")")[2].split()[:4]
        except OSError:
            continue  # ended meanwhile
        if int(own) == session and state != "Z":
            found.append(stat.parent.name)
    return found


def prints_into(pid: str, log: Path) -> bool:
    """Whether a process has this file for its output."""
    try:
        return Path(f"/proc/{pid}/fd/1").readlink() == log
    except OSError:
        return False  # ended meanwhile


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    """A grid that nothing happened to."""
    return run_quietly(quick(), tmp_path_factory.mktemp("whole") / "grid")


def test_every_cell_has_its_result(whole: Comparison) -> None:
    assert len(accuracies(whole)) == 8
    assert not whole.failed
    for record in whole.records:
        assert record.accuracy is not None
        assert record.seconds is not None
        assert record.memory is not None
        assert record.accuracy > 0.2
        assert record.seconds > 0
        assert 50 < record.memory < 5000
    assert len({record.accuracy for record in whole.records}) > 4  # labels and seeds do reach the runs
    assert whole.out is not None
    assert {"table.md", "table.csv", "table.tex", GRID_FILE} <= {path.name for path in whole.out.iterdir()}


@pytest.mark.skipif(not Path("/proc/self/stat").is_file(), reason="looks for processes in /proc")
def test_a_killed_grid_leaves_no_process_and_resumes(whole: Comparison, tmp_path: Path) -> None:
    """First a worker is killed, as by a system out of memory, then the grid itself."""
    out = tmp_path / "grid"
    command = [sys.executable, "-m", "protocon", "compare", "--out", str(out), "--workers", "2", *ARGUMENTS]
    with (
        (tmp_path / "err").open("w") as errors,
        subprocess.Popen(command, stdout=errors, stderr=errors, start_new_session=True) as process,
    ):
        begun = out / "cells" / "protocon-2pc-seed0"
        wait_for((begun / "checkpoints" / "epoch-00001.safetensors").is_file)
        (worker,) = (pid for pid in living(process.pid) if prints_into(pid, out / "logs" / "protocon-2pc-seed0.log"))
        os.kill(int(worker), signal.SIGKILL)
        reported = "protocon-2pc-seed0: failed: killed by SIGKILL"
        wait_for(lambda: reported in (tmp_path / "err").read_text())
        assert len(living(process.pid)) > 1  # the next worker at least
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    wait_for(lambda: not living(process.pid))
    before = times(out)
    assert "logistic-regression-2pc-seed0" in before
    assert "protocon-2pc-seed0" not in before  # it was in the middle

    resumed = run_quietly(quick(), out)
    after = times(out)
    assert len(after) == 8
    assert {name: after[name] for name in before} == before
    log = (out / "logs" / "protocon-2pc-seed0.log").read_text()
    assert f"resuming {begun}" in log
    assert accuracies(resumed) == accuracies(whole)
    assert accuracy_page(resumed) == accuracy_page(whole)
    assert difference_page(resumed) == difference_page(whole)
    assert "delta against best baseline" in str(accuracy_page(whole).rows)

    again = run_quietly(quick(), out)  # nothing is left to do
    assert times(out) == after
    assert again == resumed


def test_a_cell_that_fails_stops_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "grid"
    arguments = ("--methods", "supervised,logistic-regression", "--labels-per-class", "2", "--seeds", "1", *QUICK)
    done = run_command(monkeypatch, capsys, "compare", "--out", str(out), "--json", *arguments, "optim.lr=1e30")
    assert done.code == 1
    (failed,) = done.json["failed"]
    assert failed["cell"] == "supervised-2pc-seed0"
    assert "loss_x" in failed["error"]
    assert "supervised-2pc-seed0: failed: error: training stopped: loss_x" in done.err
    assert re.search(r"/2  logistic-regression-2pc-seed0: \d\d\.\d\d %, \d", done.err)
    assert {row["method"]: row["n"] for row in done.json["accuracy"]} == {"supervised": 0, "logistic-regression": 1}
    assert "| supervised | – |" in (out / "table.md").read_text(encoding="utf-8")


def test_other_settings_are_refused_and_named(
    whole: Comparison, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert whole.out is not None
    before = (whole.out / GRID_FILE).read_bytes()
    done = run_command(
        monkeypatch, capsys, "compare", "--out", str(whole.out), *ARGUMENTS, "optim.epochs=3", "--seeds", "1"
    )
    assert done.code == 1
    assert "optim.epochs: 4 → 3" in done.err
    assert "seed 1: left out" in done.err
    assert (whole.out / GRID_FILE).read_bytes() == before


def test_a_grid_grows_and_keeps_its_cells(tmp_path: Path) -> None:
    out = tmp_path / "grid"
    first = run_quietly(quick(methods="logistic-regression", seeds=1), out)
    before = times(out)
    second = run_quietly(quick(methods="logistic-regression,label-spreading"), out)
    assert len(second.records) == 8
    assert len(before) == 2
    assert before.items() <= times(out).items()
    assert accuracies(first).items() <= accuracies(second).items()


def test_a_folder_of_something_else_and_a_folder_in_use_are_refused(tmp_path: Path) -> None:
    (tmp_path / "used").mkdir()
    (tmp_path / "used" / "thesis.tex").touch()
    with pytest.raises(RunError, match="holds other files"):
        run_quietly(quick(), tmp_path / "used")
    with grid._alone_in(tmp_path / "busy"), pytest.raises(RunError, match="another process"):
        run_quietly(quick(), tmp_path / "busy")


def test_what_would_fail_everywhere_is_said_before_anything_runs(tmp_path: Path) -> None:
    np.savez(tmp_path / "data.npz", x=np.zeros((20, 3), dtype=np.float32), y=np.arange(20) % 2)
    no_test = build_request(
        methods=["label-spreading"], settings={"data": {"name": "arrays", "root": tmp_path / "data.npz"}}
    )
    with pytest.raises(DataError, match="no test set"):
        run_quietly(no_test, tmp_path / "a")
    too_many = build_request(methods=["label-spreading"], labels_per_class=(2, 500))
    with pytest.raises(DataError, match="500"):
        run_quietly(too_many, tmp_path / "b")
    assert not (tmp_path / "a" / "logs").exists()
    assert not (tmp_path / "b" / "logs").exists()


def test_cells_that_learned_from_other_labels_are_not_compared(tmp_path: Path) -> None:
    out = tmp_path / "grid"
    run_quietly(quick(methods="logistic-regression", seeds=1), out)
    split = out / "cells" / "logistic-regression-2pc-seed0" / "split.json"
    other = split.parents[1] / "logistic-regression-4pc-seed0" / "split.json"
    split.write_bytes(other.read_bytes())
    with pytest.raises(RunError, match="different labels"):
        run_quietly(quick(methods="logistic-regression,label-spreading", seeds=1), out)


def test_one_worker_per_core_but_one_alone_on_an_accelerator() -> None:
    assert default_workers(quick(overrides=("run.accelerator=cpu",))) == len(os.sched_getaffinity(0))
    assert default_workers(quick(overrides=("run.accelerator=cuda",))) == 1


def test_a_failure_is_told_by_the_last_line_of_the_log(tmp_path: Path) -> None:
    request = quick()
    cell = Cell("protocon", 2, 0)
    job = Job(cell, request.config(cell), folder=tmp_path, log=tmp_path / "x.log")
    assert last_line(job.log) == ""
    assert _failure(0, job) is None
    assert _failure(3, job) == "ended with exit code 3 and no message"
    job.log.write_text("epoch 1\nerror: no space left\n\n")
    assert _failure(1, job) == "error: no space left"
    killed = _failure(-signal.SIGKILL, job)
    assert killed is not None
    assert killed.startswith("killed by SIGKILL (out of memory?)")
