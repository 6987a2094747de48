"""Real folders × label draws × seeds × methods on a frozen encoder: what decides the defaults for one's own images.

    python -m benchmarks.suite --data ../shared/data                        # all folders, 4 labels per class, 5 seeds
    python -m benchmarks.suite --data ../shared/data --quick                # 3 folders, 2 seeds: minutes
    python -m benchmarks.suite --data ../shared/data --half confirmation    # folders that chose nothing
    python -m benchmarks.suite --data ../shared/data --draws r4 --methods protocon-frozen,protocon-frozen+smoothing=0

All methods have the same encoder, features and views (the whole image and its mirror image), and those that align their
predictions the same estimated class frequencies. A row may change settings, `METHOD+key=value+key=value`:
`fixmatch-da+class_prior=uniform`. A draw is a number of labels per class, or `r4`: four times as many random images as
there are classes. Each folder has a file of results, one line per cell; a second call measures what is missing.

`--data` holds `suite/NAME.zip` and `cifar10.zip`, each with `NAME/{train,test}/<class>/…`. They are unpacked beside the
results (`--work`), never into the project.
"""

import argparse
import json
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from functools import partial
from pathlib import Path

from benchmarks.suite_cells import Result, run_folder
from benchmarks.suite_tables import table

TUNING = ("trash", "satellite", "skin", "plankton", "cifar10")
CONFIRMATION = ("seedlings", "art", "food", "hieroglyphs")
HALVES = {"tuning": TUNING, "confirmation": CONFIRMATION, "all": TUNING + CONFIRMATION}
QUICK = ("trash", "satellite", "plankton")
METHODS = (
    *("logistic-regression", "logistic-regression-views", "label-spreading", "label-spreading-cosine"),
    *("mixture-graph", "supervised", "fixmatch-da", "simmatch", "flexmatch", "protocon", "protocon-frozen"),
)
OURS = "protocon-frozen"


def read_options() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with suite/*.zip and cifar10.zip")
    parser.add_argument("--work", type=Path, default=Path("suite"), help="folder for images, cache and results")
    parser.add_argument("--name", default="results", help="of this comparison in the work folder")
    parser.add_argument("--half", choices=HALVES, default="all")
    parser.add_argument("--folders", help="a,b,c instead of a half")
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--draws", default="4", help="2,4,8: labels per class; r4: random images")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--set", action="append", default=[], help="key=value for all methods")
    parser.add_argument("--workers", type=int, default=2, help="folders at a time")
    parser.add_argument("--quick", action="store_true", help="3 folders, 4 labels per class, 2 seeds")
    parser.add_argument("--json", type=Path, help="write all cells here")
    return parser.parse_args()


def measure(options: argparse.Namespace, folders: tuple[str, ...]) -> list[Result]:
    """All cells, several folders at a time."""
    work = options.work.resolve()
    one = partial(
        _one,
        methods=options.methods.split(","),
        draws=options.draws.split(","),
        seeds=options.seeds,
        data=options.data.resolve(),
        work=work,
        name=options.name,
        overrides=options.set,
    )
    if options.workers < 2:
        return [result for folder in folders for result in one(folder)]
    with ProcessPoolExecutor(options.workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        return [result for results in pool.map(one, folders) for result in results]


def _one(folder: str, *, name: str, work: Path, **rest: object) -> list[Result]:
    return run_folder(folder, work=work, results=work / name / f"{folder}.jsonl", **rest)  # type: ignore[arg-type]


def main() -> None:
    """Measure what is missing, print the tables, keep the cells."""
    options = read_options()
    folders = tuple(options.folders.split(",")) if options.folders else HALVES[options.half]
    if options.quick:
        folders, options.draws, options.seeds = QUICK, "4", 2
    results = measure(options, folders)
    for draw in options.draws.split(","):
        print("\n" + table(results, draw, OURS))
    if options.json is not None:
        changed = " ".join(f"--set {text}" for text in options.set)
        command = (
            f"python -m benchmarks.suite --folders {','.join(folders)} --methods {options.methods} "
            f"--draws {options.draws} --seeds {options.seeds} {changed}"
        )
        content = {"command": command.strip(), "cells": [asdict(result) for result in results]}
        options.json.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
