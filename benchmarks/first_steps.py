"""The first steps of an exact recipe: a real run that is stopped after some whole epochs, and what is kept of it.

python -m benchmarks.first_steps --recipe table1/cifar10-40/protocon --root data/cifar10 --steps 300

The recipe is not changed: its schedule is that of the full length, which a CPU cannot train. The run is stopped as
`kill` would stop it once the epoch that holds the last of these steps has ended. The same command continues a run that
was stopped before, and `--minutes` stops it early, so that a long run can be made of short pieces.
"""

import argparse
import json
import math
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import yaml

from protocon.claims.results import commit
from protocon.runs import layout

HERE = Path(__file__).resolve().parent
_LOOK = 2.0
"""Seconds between two looks at the log."""


def rows_of(run: Path) -> list[dict[str, Any]]:
    """The run's epochs so far."""
    file = run / layout.METRICS
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()] if file.is_file() else []


def find_run(out: Path) -> Path | None:
    """The run's folder, begun or not."""
    return next(iter(sorted(path.parent for path in out.glob(f"*/{layout.CONFIG}"))), None)


def train(recipe: str, root: str, steps: int, out: Path, minutes: float, settings: list[str]) -> bool:
    """Train until the epoch that holds the last step has ended; False where the time was over before.

    Args:
        recipe: name of the recipe.
        root: of its data.
        steps: that are wanted at the least.
        out: folder of the run.
        minutes: after which it is stopped; the next call continues.
        settings: `key=value` of the run, such as how often it is evaluated.
    """
    begun = find_run(out)
    if begun is None:
        ask = ["--recipe", recipe, "--root", root, "--out", str(out), "run.checkpoint_minutes=5", *settings]
    else:
        ask = ["--resume", str(begun)]
    started, process = time.monotonic(), subprocess.Popen([sys.executable, "-m", "protocon", "train", *ask])
    enough = False
    while process.poll() is None:
        time.sleep(_LOOK)
        run = find_run(out)
        rows = rows_of(run) if run else []
        enough = bool(rows) and rows[-1]["step"] >= steps
        if enough or time.monotonic() - started > 60 * minutes:
            process.terminate()
            process.wait()
            return enough
    raise SystemExit(f"training ended by itself with {process.returncode}")


def total_steps(run: Path) -> int:
    """Steps of the whole schedule, which the recipe asks for."""
    asked = yaml.safe_load((run / layout.RESOLVED).read_text(encoding="utf-8"))["optim"]["total_steps"]
    return int(asked)


def digest(run: Path, recipe: str, steps: int) -> dict[str, Any]:
    """What the epochs show: whether every number is finite, and how many clusters were in use."""
    rows = rows_of(run)
    seconds = [json.loads(line)["seconds"] for line in (run / layout.TIMINGS).read_text().splitlines()]
    numbers = [value for row in rows for value in row.values() if isinstance(value, int | float)]
    warnings = run / layout.WARNINGS
    return {
        "recipe": recipe,
        "steps_asked": steps,
        "steps": rows[-1]["step"],
        "epochs": len(rows),
        "total_steps": total_steps(run),
        "numbers": len(numbers),
        "all_finite": all(math.isfinite(value) for value in numbers),
        "clusters_in_use": [row.get("clusters_in_use") for row in rows],
        "seconds": round(sum(seconds), 1),
        "warnings": [json.loads(line) for line in warnings.read_text().splitlines()] if warnings.is_file() else [],
        "commit": commit(),
        "command": "python -m benchmarks.first_steps " + " ".join(sys.argv[1:]),
    }


def main() -> None:
    """Train, keep, draw."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--recipe", default="table1/cifar10-40/protocon")
    parser.add_argument("--root", required=True)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--minutes", type=float, default=math.inf)
    parser.add_argument("--out", type=Path, default=Path("runs/first-steps"))
    parser.add_argument("--keep", type=Path, default=HERE / "results" / "first_steps")
    parser.add_argument("settings", nargs="*", help="run.key=value")
    asked = parser.parse_args()
    run = find_run(asked.out)
    rows = rows_of(run) if run else []
    if not (rows and rows[-1]["step"] >= asked.steps):
        if not train(asked.recipe, asked.root, asked.steps, asked.out, asked.minutes, asked.settings):
            raise SystemExit("not yet enough steps; the same command continues")
        run = find_run(asked.out)
    assert run is not None
    subprocess.run([sys.executable, "-m", "protocon", "report", str(run)], check=True)
    asked.keep.mkdir(parents=True, exist_ok=True)
    for name in (layout.METRICS, layout.TIMINGS, layout.CLASSES, layout.RESOLVED, layout.REPORT):
        if (run / name).is_file():
            shutil.copy(run / name, asked.keep / name)
    summary = digest(run, asked.recipe, asked.steps)
    (asked.keep / "digest.json").write_text(json.dumps(summary, indent=1) + "\n", encoding="utf-8")
    sys.stdout.write(json.dumps(summary, indent=1) + "\n")


if __name__ == "__main__":
    main()
