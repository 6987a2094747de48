"""Real folders × label counts × seeds × methods on a frozen encoder: what decides the defaults for one's own images.

    python benchmarks/suite.py --data ../shared/data                        # all folders, 4 labels per class, 5 seeds
    python benchmarks/suite.py --data ../shared/data --quick                # 3 folders, 2 seeds: minutes
    python benchmarks/suite.py --data ../shared/data --half confirmation    # folders that chose nothing

All methods have the same encoder, features and views (the whole image and its mirror image). Every folder is one
`protocon compare`, so that a second call resumes a stopped one. `--set class_prior=uniform` gives the methods that
align their published uniform frequencies instead of estimated ones.

`--data` holds `suite/NAME.zip` and `cifar10.zip`, each with `NAME/{train,test}/<class>/…`. They are unpacked beside the
runs (`--work`), never into the project.
"""

import argparse
import json
import statistics
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from protocon.compare.grid import compare
from protocon.compare.request import build_request

TUNING = ("trash", "satellite", "skin", "plankton", "cifar10")
CONFIRMATION = ("seedlings", "art", "food", "hieroglyphs")
HALVES = {"tuning": TUNING, "confirmation": CONFIRMATION, "all": TUNING + CONFIRMATION}
QUICK = ("trash", "satellite", "plankton")
METHODS = "logistic-regression,label-spreading,supervised,fixmatch-da,simmatch,flexmatch,protocon,protocon-frozen"
OURS = "protocon-frozen"
CIFAR_TRAIN, CIFAR_TEST = 1000, 200
"""Images of each class of CIFAR-10, the first by name."""
SETTINGS = (
    *("network.frozen=true", "views.cached_weak=0", "views.cached_strong=0", "views.cached_mirror=true"),
    *("run.report=false", "run.tensorboard=false", "run.checkpoint_every=1000", "run.eval_every=1000"),
)


@dataclass(frozen=True)
class Result:
    """One cell."""

    folder: str
    method: str
    labels: int
    seed: int
    accuracy: float
    macro: float | None
    seconds: float | None


def unpack(archive: Path, name: str, work: Path) -> Path:
    """The folder of this name, unpacked once; of CIFAR-10 the first images of each class."""
    folder = work / "images" / name
    done = folder / ".unpacked"
    if done.is_file():
        return folder
    with zipfile.ZipFile(archive) as content:
        for member in sorted(_members(content, name)):
            content.extract(member, work / "images")
    done.touch()
    return folder


def _members(content: zipfile.ZipFile, name: str) -> Iterator[str]:
    taken: dict[str, int] = {}
    for member in sorted(content.namelist()):
        parts = member.split("/")
        if len(parts) != 4 or not parts[3] or parts[0] != name:
            continue
        place = "/".join(parts[1:3])
        taken[place] = taken.get(place, 0) + 1
        limit = CIFAR_TRAIN if parts[1] == "train" else CIFAR_TEST
        if name != "cifar10" or taken[place] <= limit:
            yield member


def run_folder(name: str, options: argparse.Namespace) -> list[Result]:
    """All cells of a folder, the missing ones trained."""
    archive = options.data / ("cifar10.zip" if name == "cifar10" else f"suite/{name}.zip")
    if not archive.is_file():
        raise SystemExit(f"{archive} is not there; --data must hold cifar10.zip and suite/NAME.zip")
    root = unpack(archive, name, options.work)
    settings: dict[str, Any] = {
        "data": {"name": "imagefolder", "root": str(root)},
        "run": {"cache": str(options.work / "cache")},
    }
    request = build_request(
        methods=options.methods.split(","),
        labels_per_class=options.labels,
        seeds=options.seeds,
        settings=settings,
        overrides=[*SETTINGS, *options.set],
    )
    found = compare(request, out=options.work / options.name / name, workers=options.workers)
    for record in found.failed:
        raise SystemExit(f"{name}, {record.name}: {record.error}")
    rows = found.content()["cells"]
    return [
        Result(name, r["method"], r["labels"], r["seed"], r["accuracy"], r.get("macro_accuracy"), r["seconds"])
        for r in rows
    ]


def table(results: list[Result], labels: int) -> str:
    """Means over folders, wins, the paired difference from ours with its interval, and the worst folder."""
    chosen = [result for result in results if result.labels == labels]
    folders = list(dict.fromkeys(result.folder for result in chosen))
    methods = list(dict.fromkeys(result.method for result in chosen))
    lines = [
        f"{labels} labels per class: accuracy / macro accuracy in %, mean over seeds",
        "",
        f"| method | {' | '.join(folders)} | mean | folders won | {OURS} is ahead by | worst folder |",
        "|---" * (len(folders) + 5) + "|",
    ]
    means = {(m, f): _mean(chosen, m, f, "accuracy") for m in methods for f in folders}
    for method in methods:
        cells = [f"{100 * means[method, f]:.1f} / {100 * _mean(chosen, method, f, 'macro'):.1f}" for f in folders]
        accuracy = statistics.fmean(means[method, f] for f in folders)
        macro = statistics.fmean(_mean(chosen, method, f, "macro") for f in folders)
        won = sum(means[method, f] == max(means[m, f] for m in methods) for f in folders)
        ahead, worst = _ahead(chosen, method, folders)
        lines.append(
            f"| {method} | {' | '.join(cells)} | {100 * accuracy:.1f} / {100 * macro:.1f} | {won} | {ahead} | {worst} |"
        )
    return "\n".join(lines)


def _mean(results: list[Result], method: str, folder: str, what: str) -> float:
    values = [getattr(r, what) for r in results if r.method == method and r.folder == folder]
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if known else float("nan")


def _ahead(results: list[Result], method: str, folders: list[str]) -> tuple[str, str]:
    """Mean paired difference of accuracy with a 95 % interval over seeds, folders fixed; and its smallest by folder."""
    if method == OURS or not any(r.method == OURS for r in results):
        return "", ""
    by_folder, variance = {}, 0.0
    for folder in folders:
        ours = {r.seed: r.accuracy for r in results if r.method == OURS and r.folder == folder}
        differences = [ours[r.seed] - r.accuracy for r in results if r.method == method and r.folder == folder]
        by_folder[folder] = statistics.fmean(differences)
        if len(differences) > 1:
            variance += statistics.variance(differences) / len(differences)
    mean = statistics.fmean(by_folder.values())
    half = 1.96 * variance**0.5 / len(folders)
    worst = min(by_folder, key=lambda folder: by_folder[folder])
    return f"{100 * mean:+.1f} ± {100 * half:.1f}", f"{worst} {100 * by_folder[worst]:+.1f}"


def read_options() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with suite/*.zip and cifar10.zip")
    parser.add_argument("--work", type=Path, default=Path("suite"), help="folder for images, cache and runs")
    parser.add_argument("--name", default="runs", help="of this comparison in the work folder")
    parser.add_argument("--half", choices=HALVES, default="all")
    parser.add_argument("--folders", help="a,b,c instead of a half")
    parser.add_argument("--methods", default=METHODS)
    parser.add_argument("--labels", type=lambda text: [int(part) for part in text.split(",")], default=[4])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--set", action="append", default=[], help="key=value for all methods that have it")
    parser.add_argument("--workers", type=int)
    parser.add_argument("--quick", action="store_true", help="3 folders, 4 labels per class, 2 seeds")
    parser.add_argument("--json", type=Path, help="write all cells here")
    return parser.parse_args()


def main() -> None:
    """Run what is missing, print the tables, keep the cells."""
    options = read_options()
    folders = options.folders.split(",") if options.folders else HALVES[options.half]
    if options.quick:
        folders, options.labels, options.seeds = QUICK, [4], 2
    options.work.mkdir(parents=True, exist_ok=True)
    results = [result for name in folders for result in run_folder(name, options)]
    for labels in options.labels:
        print(table(results, labels) + "\n")
    if options.json is not None:
        command = (
            f"benchmarks/suite.py --methods {options.methods} --folders {','.join(folders)} --seeds {options.seeds}"
        )
        content = {
            "command": " ".join([command, *(f"--set {s}" for s in options.set)]),
            "cells": [vars(r) for r in results],
        }
        options.json.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
