"""Kill real runs 200 times, resume each, and compare every bit of the end with runs that were left alone.

    python -m benchmarks.kills
    python -m benchmarks.kills --kills 50 --photos photos/ --labels labels.csv

Half of the kills come at random times, half just before a chosen step or file operation (flush, rename, removal). The
second form kills `protocon train photos/ --labels labels.csv` instead, with the installed encoder, at random times from
the first moment to the report; every third run computes its features, the others have a copy of them.
Prints one JSON object.
"""

import argparse
import json
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from protocon.methods import METHODS
from tests.engine.kills import SMALL_DIGITS, Command, assert_same_run, embeddings, moments, where, whole
from tests.engine.zygote import Ended, Zygote


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


def on_photos(zygote: Zygote, folder: Path, kills: int, photos: Path, labels: Path) -> dict[str, Any]:
    """The README's run on a folder of photographs, killed at random times."""

    def run(out: Path, after: float | None) -> Ended:
        options = ("--out", str(out), "--name", "run", "--resume", "auto", "--json", "checkpoint_minutes=0.002")
        command = ("train", str(photos), "--labels", str(labels), *options)
        return zygote.run(*command, after=after, cache=out / "cache")

    began = time.monotonic()
    ended = run(folder / "whole", None)
    if ended.code != 0:
        raise RuntimeError(ended.output)
    seconds = time.monotonic() - began
    stages: Counter[str] = Counter()
    finished, chance, out = 0, moments(seed=13), folder / "run-0"
    while True:
        left = kills - stages.total()
        # One in four comes at any time up to the end, the others soon, so that a run is killed several times.
        longest = seconds if stages.total() % 4 == 3 else seconds / 4
        ended = run(out, next(chance) * longest if left > 0 else None)
        if ended.code == -signal.SIGKILL:
            stages[stage(out / "run")] += 1
            print(f"{stages.total()} kills: {dict(stages)}, {finished} finished", file=sys.stderr, flush=True)
            continue
        if ended.code != 0:
            raise RuntimeError(ended.output)
        assert_same_run(folder / "whole" / "run", out / "run")
        ours, theirs = ((place / "run" / "cross_check.csv").read_bytes() for place in (folder / "whole", out))
        assert ours == theirs
        finished += 1
        if left <= 0:
            break
        out = folder / f"run-{finished}"
        if finished % 3:
            shutil.copytree(folder / "whole" / "cache", out / "cache")
    return {
        "kills": stages.total(),
        "differences": 0,  # any would have stopped this with an error
        "kills_by_stage": dict(stages),
        "runs_finished_and_identical": finished,
        "images": len(json.loads((out / "run" / "data.json").read_text())["used"]["unlabelled"]),
        "seconds_of_a_run": round(seconds),
    }


def stage(run: Path) -> str:
    """Which stage a killed run was in, by the files that it has."""
    if not (run / "split.json").is_file():
        return "reading the images"
    if not any((run / "checkpoints").glob("*")):
        return "features"
    if not (run / "model.safetensors").is_file():
        return "training"
    if not (run / "result.json").is_file():
        return "held-out labels"
    return "report" if not (run / "report.html").is_file() else "after the report"


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--photos", type=Path, help="A folder of images: kill runs on it instead.")
    parser.add_argument("--labels", type=Path, help="Labels of some of them.")
    options = parser.parse_args()
    kills = options.kills
    if options.photos is not None:
        labels = (options.labels or options.photos / "labels.csv").resolve()
        with tempfile.TemporaryDirectory() as name, Zygote(Path(name) / "log") as zygote:
            zygote.run("recipes")
            print(json.dumps(on_photos(zygote, Path(name), kills, options.photos.resolve(), labels), indent=2))
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
