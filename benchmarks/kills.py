"""Kill real runs 200 times, resume each, and compare every bit of the end with runs that were left alone.

    python -m benchmarks.kills
    python -m benchmarks.kills --kills 50 --photos photos/ --labels labels.csv

Half of the kills come at random times, half just before a chosen step or file operation (flush, rename, removal). The
second form kills `protocon train photos/ --labels labels.csv` instead, with the installed encoder, at random times in
every stage: once while images are read, four times each among features, in training, among held-out labels, and while
labels and report are written; then the run may finish, and the next one begins.
It takes `--work FOLDER` to be continued later. Prints one JSON object.
"""

import argparse
import json
import math
import shutil
import signal
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from protocon.methods import METHODS
from tests.engine.kills import SMALL_DIGITS, Command, assert_same_run, embeddings, moments, where, whole
from tests.engine.photos import make_package
from tests.engine.zygote import STAGES, Ended, Zygote

READING = "reading the images"


def by_time(zygote: Zygote, folder: Path, kills: int) -> dict[str, Any]:
    """Digits with ProtoCon, killed at random times."""
    command = Command(SMALL_DIGITS)
    began = time.monotonic()
    whole(zygote, command, folder / "whole")
    seconds = time.monotonic() - began
    places: list[str] = []
    finished = 0
    out = folder / "run-0"
    for moment in moments(seed=11):
        left = kills - len(places)
        # One in four comes anywhere from the start of the process on, the others once training has begun.
        training = out / "run" if len(places) % 4 else None
        after = moment * seconds / 4 if left > 0 else None
        ended = zygote.run(*command.arguments(out), after=after, training_in=training)
        if ended.code == -signal.SIGKILL:
            places.append(where(out))
            continue
        if ended.code != 0:
            raise RuntimeError(ended.output)
        assert_same_run(folder / "whole" / "run", out / "run")
        finished += 1
        if left <= 0:
            break
        out = folder / f"run-{finished}"  # a finished run has nothing left to lose
    return {"kills": len(places), "different_places": len(set(places)), "runs_finished_and_identical": finished}


def by_event(zygote: Zygote, folder: Path, kills: int) -> dict[str, Any]:
    """Every method in turn, killed just before chosen events."""
    counts = dict.fromkeys(METHODS, 0)
    finished = 0
    chance = moments(seed=12)
    for number, method in enumerate(METHODS):
        command = Command(tuple(embeddings(folder / method)), method)
        events = whole(zygote, command, folder / method / "whole").events
        wanted = kills // len(METHODS) + (number < kills % len(METHODS))
        out = folder / method / "run-0"
        while counts[method] < wanted:
            ended = zygote.run(*command.arguments(out), at_event=int(next(chance) * events))
            if ended.code == -signal.SIGKILL:
                counts[method] += 1
                where(out)
                continue
            if ended.code != 0:
                raise RuntimeError(ended.output)
            assert_same_run(folder / method / "whole" / "run", out / "run")
            finished += 1
            out = folder / method / f"run-{finished}"
        ended = zygote.run(*command.arguments(out))
        if ended.code != 0:
            raise RuntimeError(ended.output)
        assert_same_run(folder / method / "whole" / "run", out / "run")
        finished += 1
    return {"kills": sum(counts.values()), "kills_by_method": counts, "runs_finished_and_identical": finished}


PLAN = ((READING, 1), *((stage, 4) for stage in STAGES))
"""In which stages a run is killed, how many times in each, before it may finish."""


@dataclass
class Series:
    """Kills of runs on photographs; kept in a file, so that a series can be continued."""

    file: Path
    lengths: dict[str, float] = field(default_factory=dict)
    """Seconds that each stage takes in the run that is left alone."""
    stages: dict[str, int] = field(default_factory=dict)
    """Kills in each."""
    planned: int = 0
    """How far through the plan the present run is."""
    finished: int = 0
    """Runs that came to their end, each the same as the one left alone."""

    @property
    def kills(self) -> int:
        """In all stages."""
        return sum(self.stages.values())

    def save(self) -> None:
        """Write it to its file."""
        content = {name: value for name, value in vars(self).items() if name != "file"}
        self.file.write_text(json.dumps(content))

    @classmethod
    def load(cls, file: Path) -> "Series":
        """As the file has it; a new one without a file."""
        return cls(file, **(json.loads(file.read_text()) if file.is_file() else {}))


def on_photos(
    zygote: Zygote,
    folder: Path,
    kills: int,
    command: tuple[str, ...],
    *,
    seconds: float = math.inf,
    packages: Path | None = None,
) -> dict[str, Any]:
    """The README's run on a folder of photographs, killed at random times in every stage.

    Args:
        zygote: starts the runs.
        folder: of the runs; what is there of an earlier series is continued.
        kills: how many in all.
        command: `train photos --labels labels.csv`, with settings if wanted.
        seconds: stop about then, to be continued.
        packages: where a tiny encoder lies that is taken instead of the installed one.
    """
    began, series = time.monotonic(), Series.load(folder / "series.json")
    wanted = [stage for stage, times in PLAN for _ in range(times)]

    def run(out: Path, stage: str = "none", after: float | None = None) -> Ended:
        options = ("--out", str(out), "--name", "run", "--resume", "auto", "--json", "checkpoint_minutes=0.002")
        ended = zygote.run(*command, *options, after=after, in_stage=stage, cache=out / "cache", packages=packages)
        if ended.code not in (0, -signal.SIGKILL):
            raise RuntimeError(ended.output)
        return ended

    if not series.lengths:
        shutil.rmtree(folder / "whole", ignore_errors=True)
        started = time.monotonic()
        series.lengths = _lengths(run(folder / "whole").stages, time.monotonic() - started)
        series.save()
    for moment in moments(seed=13 + series.kills):
        if time.monotonic() - began > seconds or (series.kills >= kills and series.planned == 0):
            break
        out, left = folder / f"run-{series.finished}", wanted[series.planned :] if series.kills < kills else []
        ended = run(out, left[0], moment * series.lengths[left[0]]) if left else run(out)
        if ended.code == 0:
            _assert_same(folder / "whole" / "run", out / "run")
            series.finished, series.planned = series.finished + 1, 0
        else:
            reached = ended.stages[-1][0] if ended.stages else READING
            series.stages[reached] = series.stages.get(reached, 0) + 1
            series.planned += 1
        series.save()
        print(f"{series.kills} kills: {series.stages}, {series.finished} finished", file=sys.stderr, flush=True)
    used = json.loads((folder / "whole" / "run" / "data.json").read_text())["counts"]
    return {
        "kills": series.kills,
        "differences": 0,  # any would have stopped this with an error
        "kills_by_stage": {stage: series.stages.get(stage, 0) for stage, _ in PLAN},
        "runs_finished_and_identical": series.finished,
        "images": used["labelled"] + used["unlabelled"],
        "seconds_of_a_run": round(sum(series.lengths.values())),
    }


def _assert_same(whole: Path, run: Path) -> None:
    assert_same_run(whole, run)
    assert (run / "report.html").is_file()
    assert (run / "cross_check.csv").read_bytes() == (whole / "cross_check.csv").read_bytes()


def _lengths(reached: tuple[tuple[str, float], ...], seconds: float) -> dict[str, float]:
    """Seconds that each stage takes, from when each was reached first."""
    first: dict[str, float] = {READING: 0.0}
    for stage, at in reached:
        first.setdefault(stage, at)
    ends = [*list(first.values())[1:], seconds]
    return {stage: end - start for (stage, start), end in zip(first.items(), ends, strict=True)}


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--photos", type=Path, help="A folder of images: kill runs on it instead.")
    parser.add_argument("--labels", type=Path, help="Labels of some of them.")
    parser.add_argument("--work", type=Path, help="With --photos: a folder that keeps the series, to be continued.")
    parser.add_argument("--tiny", action="store_true", help="With --photos: a tiny encoder, which takes a tenth.")
    parser.add_argument("--minutes", type=float, default=math.inf, help="With --photos: stop about then.")
    parser.add_argument("--set", dest="settings", nargs="*", default=[], help="With --photos: settings, key=value.")
    options = parser.parse_args()
    kills = options.kills
    if options.photos is not None:
        labels = (options.labels or options.photos / "labels.csv").resolve()
        command = ("train", str(options.photos.resolve()), "--labels", str(labels), *options.settings)
        with tempfile.TemporaryDirectory() as name, Zygote(Path(name) / "log") as zygote:
            zygote.run("recipes")
            folder = options.work or Path(name)
            folder.mkdir(parents=True, exist_ok=True)
            packages = folder.resolve() / "packages" if options.tiny else None
            if packages is not None and not packages.is_dir():
                make_package(packages)
            found = on_photos(zygote, folder.resolve(), kills, command, seconds=60 * options.minutes, packages=packages)
            print(json.dumps(found | {"encoder": "tiny" if options.tiny else "installed"}, indent=2))
        return
    with tempfile.TemporaryDirectory() as name, Zygote(Path(name) / "log") as zygote:
        zygote.run("recipes")
        timed = by_time(zygote, Path(name) / "time", kills - kills // 2)
        chosen = by_event(zygote, Path(name) / "event", kills // 2)
    result = {
        "kills": timed["kills"] + chosen["kills"],
        "differences": 0,  # any would have stopped this with an error
        "random times, ProtoCon on digits": timed,
        "before chosen steps and writes, every method on embeddings": chosen,
    }
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
