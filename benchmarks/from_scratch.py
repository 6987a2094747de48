"""All methods from scratch on one field of claims, cell by cell, with 2, 4 and 8 labels per class.

python -m benchmarks.from_scratch --data fashion-mnist

Every finished cell is a line of `results/compare_DATA_cells.csv`; a cell that is there is never trained again. So the
committed file is all that a later run needs to continue, on this or any other machine, and several processes can work
on it at a time. `--minutes` stops after the cell that is then being trained. Cells come in an order in which whatever
is finished can be compared: all methods with one seed and one number of labels before the next.

python -m benchmarks.from_scratch --validation --methods VARIANTS --cells benchmarks/results/ideas_cells.csv

With `--validation` the test images are further images of the training part: for choosing between ideas.
"""

import argparse
import csv
import fcntl
import io
import json
import math
import os
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from protocon.claims.claim import Need
from protocon.claims.claims_runner import jobs_of
from protocon.claims.field import Field, drawn, field_named
from protocon.claims.results import commit
from protocon.compare.cells import Job, run_reference
from protocon.compare.request import numbers_in
from protocon.data.shared_bundle import SharedBundle, share
from protocon.engine.run import fit
from protocon.references import REFERENCES
from protocon.runs.run_data import load_data

HERE = Path(__file__).resolve().parent
_DUAL = "+alignment=dual"
METHODS = (
    *(f"protocon{_DUAL}", f"fixmatch-da{_DUAL}", "flexmatch", f"simmatch{_DUAL}", f"comatch{_DUAL}", "protocon"),
    *("fixmatch-da", "fixmatch", "simmatch", "debiaspl", "comatch", "freematch", "softmatch", "pseudo-label"),
    *("supervised", *REFERENCES, "paws", "mpl"),
)
"""The quick ones that decide most first: should the time end, what is there can be compared."""
COLUMNS = ("method", "labels", "seed", "accuracy", "macro_accuracy", "seconds", "commit")
SETTINGS = ("run.eval_every=10",)
"""The result is the mean over the last ten epochs, which are always evaluated."""
Place = tuple[str, int, int]
"""Method, labels per class, seed."""


def plan(methods: list[str], labels: list[int], seeds: list[int]) -> list[Place]:
    """The cells in their order: three seeds of every number of labels, then the other seeds.

    Args:
        methods: methods, references and variants.
        labels: per class, the most wanted first.
        seeds: which.
    """
    first, later = [seed for seed in seeds if seed < 3], [seed for seed in seeds if seed >= 3]
    return [(method, count, seed) for some in (first, later) for count in labels for seed in some for method in methods]


def finished(file: Path) -> set[Place]:
    """Cells that have a line."""
    if not file.is_file():
        return set()
    with file.open(encoding="utf-8", newline="") as lines:
        return {(row["method"], int(row["labels"]), int(row["seed"])) for row in csv.DictReader(lines)}


def add(file: Path, row: dict[str, Any]) -> None:
    """Append a line, whole, whoever else is writing."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a", encoding="utf-8", newline="") as lines:
        fcntl.flock(lines, fcntl.LOCK_EX)
        text = io.StringIO()
        writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
        if file.stat().st_size == 0:
            writer.writeheader()
        writer.writerow(row)
        lines.write(text.getvalue())


@contextmanager
def taken(lock: Path) -> Iterator[bool]:
    """Hold a cell; False if another process does."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("w") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True


def measure(job: Job, data: SharedBundle) -> dict[str, Any]:
    """Train a cell, or what is left of it.

    Args:
        job: the cell with its settings.
        data: the field's images.
    """
    if job.cell.method in REFERENCES:
        run_reference(replace(job, data=data))
        found = job.result()
        assert found is not None
        return found
    quiet = Console(file=io.StringIO())
    return fit(job.config, out=job.folder, name=job.cell.name, resume=True, console=quiet, bundle=data.open())


def run(field: Field, cells: list[Place], *, file: Path, out: Path, minutes: float) -> bool:
    """Train what is missing; False where the time was over before.

    Args:
        field: data and common settings.
        cells: in their order.
        file: of the finished cells.
        out: folder of the runs.
        minutes: no cell begins after this long.
    """
    started, code = time.monotonic(), commit()
    missing = [place for place in cells if place not in finished(file)]
    if not missing:
        return True
    wanted = replace(field, seeds=1 + max(seed for _, _, seed in cells))
    needs = {(method, count): Need(method, count) for method, count, _ in missing}
    jobs = jobs_of(wanted, list(needs.values()), out, SETTINGS)
    bundle = drawn(load_data(next(iter(jobs.values())).config), field)
    folder = out / f".data-{os.getpid()}"
    shared = share(bundle, folder)
    assert shared is not None  # fields are images in memory
    try:
        for method, count, seed in missing:
            if time.monotonic() - started > 60 * minutes:
                return False
            job = jobs[needs[method, count], seed]
            with taken(out / "locks" / job.cell.name) as ours:
                if not ours or (method, count, seed) in finished(file):
                    continue
                result = measure(job, shared)
                add(
                    file,
                    {
                        "method": method,
                        "labels": count,
                        "seed": seed,
                        "accuracy": round(result["test_accuracy"], 5),
                        "macro_accuracy": round(result["test_macro_accuracy"], 5),
                        "seconds": round(result["seconds"], 1),
                        "commit": code,
                    },
                )
                sys.stderr.write(f"{job.cell.name}: {result['test_accuracy']:.4f}, {result['seconds']:.0f} s\n")
                shutil.rmtree(job.folder / job.cell.name, ignore_errors=True)  # the line is what is kept
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return all(place in finished(file) for place in cells)


def describe(field: Field, file: Path) -> None:
    """Write beside the cells what all of them share."""
    about = {
        "data": field.name,
        "about": field.about,
        "validation": field.validation,
        "epochs": field.epochs,
        "settings": [*field.settings, *SETTINGS],
        "command": "python -m benchmarks.from_scratch " + " ".join(sys.argv[1:]),
    }
    file.with_suffix(".json").write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")


def main() -> None:
    """Train what is missing of the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", default="fashion-mnist")
    parser.add_argument("--validation", action="store_true")
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--labels", default="4,2,8")
    parser.add_argument("--seeds", default="0,1,2,3,4")
    parser.add_argument("--minutes", type=float, default=math.inf)
    parser.add_argument("--cells", type=Path)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    field = field_named(asked.data, validation=asked.validation)
    file = asked.cells or HERE / "results" / f"compare_{asked.data.replace('-', '_')}_cells.csv"
    out = asked.out or Path("runs") / f"from-scratch-{asked.data}"
    cells = plan(asked.methods.split(","), numbers_in(asked.labels), numbers_in(asked.seeds))
    describe(field, file)
    if not run(field, cells, file=file, out=out, minutes=asked.minutes):
        raise SystemExit("cells are missing; the same command continues")


if __name__ == "__main__":
    main()
