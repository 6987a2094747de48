"""Kill real runs 200 times, resume each, and compare every bit of the end with runs that were left alone.

    python -m benchmarks.kills

Half of the kills come at random times, half just before a chosen step or file operation (flush, rename, removal).
Prints one JSON object.
"""

import argparse
import json
import signal
import tempfile
import time
from pathlib import Path
from typing import Any

from protocon.methods import METHODS
from tests.engine.kills import SMALL_DIGITS, Command, assert_same_run, embeddings, moments, where, whole
from tests.engine.zygote import Zygote


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


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    kills = parser.parse_args().kills
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
