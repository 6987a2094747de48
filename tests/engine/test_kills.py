"""A run that is killed at any moment, and resumed, ends as if nothing had happened."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from protocon.methods import METHODS
from tests.engine.kills import Command, assert_same_run, embeddings, moments, where, whole
from tests.engine.layouts import save_class
from tests.engine.photos import arguments, make_photos
from tests.engine.runs import few_digits
from tests.engine.zygote import ROOT, STAGES, Zygote

KILLS = 20


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Command:
    """A run on images: four epochs of five steps."""
    few = few_digits(tmp_path_factory.mktemp("digits"), 180)
    return Command((*few, "batch_size=8", "mu=4", "epochs=4", "report=false"))


@pytest.fixture(scope="module")
def digits(zygote: Zygote, images: Command, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int, float]:
    """An uninterrupted run of digits: its folder, its events, its seconds."""
    out = tmp_path_factory.mktemp("whole")
    began = time.monotonic()
    ended = whole(zygote, images, out)
    return out / "run", ended.events, time.monotonic() - began


def test_a_real_run_killed_at_twenty_random_moments_ends_the_same(
    zygote: Zygote, images: Command, digits: tuple[Path, int, float], tmp_path: Path
) -> None:
    run, _, seconds = digits
    command = images
    out, kills, finished, places = tmp_path / "0", 0, 0, set()
    for moment in moments(seed=1):
        # One in four comes anywhere from the start of the process on, the others once training has begun.
        training = out / "run" if kills % 4 else None
        after = moment * seconds / 2 if kills < KILLS else None
        ended = zygote.run(*command.arguments(out), after=after, training_in=training)
        if ended.code == -signal.SIGKILL:
            kills += 1
            places.add(where(out))
            continue
        assert ended.code == 0, ended.output
        assert_same_run(run, out / "run")
        if kills >= KILLS:
            break
        finished += 1
        out = tmp_path / str(finished)  # a finished run has nothing left to lose
    assert len(places) > 3  # not all in the same spot


def test_a_process_of_its_own_killed_by_the_system_goes_on(
    zygote: Zygote, images: Command, digits: tuple[Path, int, float], tmp_path: Path
) -> None:
    """Nothing forked, nothing shared: `python -m protocon train`, SIGKILL; and again, in another process."""
    arguments = [sys.executable, "-m", "protocon", *images.arguments(tmp_path)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(arguments, cwd=ROOT, env=environment, stdout=log, stderr=log)
        while not list((tmp_path / "run").glob("checkpoints/epoch-00002*")):
            assert process.poll() is None
            time.sleep(0.01)
        process.kill()
        assert process.wait() == -signal.SIGKILL
    again = zygote.run(*images.arguments(tmp_path))
    assert again.code == 0, again.output
    assert f"was left by process {process.pid}" in again.output
    assert "taking over" in again.output
    assert_same_run(digits[0], tmp_path / "run")


def test_killed_between_any_two_writes_of_digits(
    zygote: Zygote, images: Command, digits: tuple[Path, int, float], tmp_path: Path
) -> None:
    """Not at a random time but at a chosen place: just before a step, a flush, a rename, a removal."""
    run, events, _ = digits
    command = images
    for moment, _ in zip(moments(seed=2), range(4), strict=False):
        ended = zygote.run(*command.arguments(tmp_path), at_event=int(moment * events / 5))
        assert ended.code == -signal.SIGKILL, ended.output
        where(tmp_path)
    assert zygote.run(*command.arguments(tmp_path)).code == 0
    assert_same_run(run, tmp_path / "run")


def test_killed_while_the_report_is_drawn(zygote: Zygote, tmp_path: Path) -> None:
    """The result is there by then; the report must still come."""
    command = Command((*embeddings(tmp_path), "run.report=true"), "supervised")
    whole(zygote, command, tmp_path / "whole")
    for last in ("result.json", "report.html", "run.lock"):
        out = tmp_path / f"before-{last}"
        assert zygote.run(*command.arguments(out), before_file=last).code == -signal.SIGKILL
        assert (out / "run" / "result.json").is_file() == (last != "result.json")
        assert zygote.run(*command.arguments(out)).code == 0
        assert (out / "run" / "report.html").is_file()
        assert_same_run(tmp_path / "whole" / "run", out / "run")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_to_the_whole_group_leaves_the_reading_processes_alone(
    zygote: Zygote, tmp_path: Path, number: int
) -> None:
    """Ctrl-C and schedulers signal groups; the run needs its readers to finish the step."""
    for label, name in enumerate(("red", "blue")):
        save_class(tmp_path / "photos" / name, label, 30)
    source = ("--data", "imagefolder", "--root", str(tmp_path / "photos"), "--labels-per-class", "2", "mu=2")
    streamed = ("storage=stream", "workers=1", "image_size=16", "batch_size=4", "epochs=400", "encoder=wrn-10-1")
    command = Command((*source, *streamed), "supervised")
    first_epoch = tmp_path / "runs" / "run" / "metrics.jsonl"
    ended = zygote.run(*command.arguments(tmp_path / "runs"), once=first_epoch, signal_number=number)
    assert ended.code == 128 + number, ended.output
    assert "all of it is saved" in ended.output
    assert "Traceback" not in ended.output


@pytest.mark.parametrize("method", [*METHODS, "taught", "distilled"])
def test_every_method_survives_kills_between_any_two_steps_or_writes(
    zygote: Zygote, method: str, tmp_path: Path
) -> None:
    command = Command((*embeddings(tmp_path, points=30), "epochs=3"), method)
    events = whole(zygote, command, tmp_path / "whole").events
    chance = moments(seed=sum(method.encode()))
    out = tmp_path / "killed"
    kills = 0
    while kills < 4:
        ended = zygote.run(*command.arguments(out), at_event=int(next(chance) * events))
        kills += 1
        if ended.code == 0:
            break
        assert ended.code == -signal.SIGKILL, ended.output
    ended = zygote.run(*command.arguments(out))
    assert ended.code == 0, ended.output
    assert_same_run(tmp_path / "whole" / "run", out / "run")


def test_a_frozen_run_of_photos_killed_between_any_two_steps_or_writes(zygote: Zygote, tmp_path: Path) -> None:
    """From the first byte of the features to the last of the labels; each run has a cache of its own."""
    make_photos(tmp_path)
    packages, quick = tmp_path / "packages", ("--resume", "auto", "report=false")
    out, other = tmp_path / "whole", tmp_path / "killed"
    ended = zygote.run(*arguments(tmp_path, out, *quick), at_event=-1, cache=out, packages=packages)
    assert ended.code == 0, ended.output
    events, again = ended.events, arguments(tmp_path, other, *quick)
    for moment, _ in zip(moments(seed=4), range(6), strict=False):
        ended = zygote.run(*again, at_event=int(moment * events / 2), cache=other, packages=packages)
        if ended.code == 0:
            break
        assert ended.code == -signal.SIGKILL, ended.output
    assert zygote.run(*again, cache=other, packages=packages).code == 0
    assert_same_run(out / "run", other / "run")


def test_a_frozen_run_of_photos_killed_at_a_random_time_in_every_stage(zygote: Zygote, tmp_path: Path) -> None:
    make_photos(tmp_path)
    packages, resumed = tmp_path / "packages", ("--resume", "auto")
    out, other = tmp_path / "whole", tmp_path / "killed"
    ended = zygote.run(*arguments(tmp_path, out, *resumed), in_stage="any", cache=out, packages=packages)
    assert ended.code == 0, ended.output
    reached = dict(reversed(ended.stages))  # when each began
    assert set(reached) == set(STAGES)
    again = arguments(tmp_path, other, *resumed)
    for stage, following, moment in zip(STAGES, (*STAGES[1:], None), moments(seed=5), strict=False):
        length = 0.1 if following is None else reached[following] - reached[stage]
        ended = zygote.run(*again, after=moment * length / 2, in_stage=stage, cache=other, packages=packages)
        assert ended.code == -signal.SIGKILL, ended.output
    last: dict[str, Any] = {
        "in_stage": STAGES[-1],
        "signal_number": signal.SIGTERM,
        "cache": other,
        "packages": packages,
    }
    ended = zygote.run(*again, after=0.05, **last)
    # Its files are whole, and it may just as well have finished.
    assert ended.code in (0, -signal.SIGTERM, 128 + signal.SIGTERM), ended.output
    assert zygote.run(*again, cache=other, packages=packages).code == 0
    assert_same_run(out / "run", other / "run")
    for name in ("cross_check.csv", "report.html"):
        assert (other / "run" / name).is_file(), name
    assert (other / "run" / "cross_check.csv").read_bytes() == (out / "run" / "cross_check.csv").read_bytes()
