"""Cost of `train photos/ --labels … --frozen` beside the encoder's bare forward passes, and of a step of its heads.

    python benchmarks/frozen.py --photos FOLDER --labels labels.csv [--quick]

prints one JSON object. A round is a whole run from an empty cache, held-out runs and report included, in a process of
its own; before and after it the bare forward passes of its views, by the engine that the run uses, on images that are
in memory: on one thread, and in as many as the run uses, which share caches and take more CPU time for the same passes.
Figures are CPU seconds, since other things may run on the machine, and ratios are within one round.
Without `--photos` it draws random pictures: the cost is the same, the labels mean nothing. The step is timed on one
thread, on features of the same photos.
"""

import argparse
import compileall
import csv
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from rich.console import Console

import protocon
from protocon.engine.loop.display import Display
from protocon.engine.loop.trainer import build_trainer
from protocon.engine.setup.encode import build_frozen
from protocon.engine.setup.fabric import build_fabric
from protocon.engine.setup.session import prepare, settle
from protocon.engine.setup.settled import Settled
from protocon.engine.setup.view_factory import image_views
from protocon.runs.run_data import load_data
from protocon.settings.config import RunConfig, build_config

COUNT, SIDE, CLASSES, LABELS = 500, 160, 6, 36
RUN_THREADS = torch.get_num_threads()
"""As many as a run computes features in."""
AT_ONCE = 256
"""Images whose views are held in memory together."""


def draw_photos(folder: Path) -> Path:
    """Random smooth pictures, some of them with a label that follows from their colour; returns the labels file."""
    draws = np.random.default_rng(0)
    folder.mkdir()
    rows = []
    for number in range(COUNT):
        kind = number % CLASSES
        coarse = draws.integers(0, 256, (8, 8, 3), dtype=np.uint8)
        coarse[..., kind % 3] //= 2 + kind // 3
        Image.fromarray(coarse).resize((SIDE, SIDE), Image.Resampling.BICUBIC).save(folder / f"{number:04d}.jpg")
        if number < LABELS:
            rows.append((f"{number:04d}.jpg", f"class {kind}"))
    labels = folder.with_suffix(".csv")
    with labels.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("file", "label"), *rows])
    return labels


def config_for(photos: Path, labels: Path, cache: Path) -> RunConfig:
    """The settings of the command."""
    data = {"name": "folder", "root": photos, "labels": labels}
    return build_config(settings={"data": data, "network": {"frozen": True}, "run": {"cache": cache}})


def forward_seconds(settled: Settled) -> np.ndarray:
    """CPU seconds of the bare forward passes of all views of all images: on one thread, and in the run's threads."""
    images = settled.bundle.train
    pixels = images.read(np.arange(len(images)))
    encoder = build_frozen(settled.config, settled.bundle).to(torch.device("cpu"))
    way = encoder.fastest(images.shape)
    views = image_views(settled.config, shape=images.shape)
    keys = torch.arange(len(images))
    way.forward(views[0](pixels[: way.batch], keys[: way.batch]))
    total = np.zeros(2)
    for view, start in product(views, range(0, len(images), AT_ONCE)):
        part = slice(start, start + AT_ONCE)
        batches = torch.split(view(pixels[part], keys[part]), way.batch)
        for place, threads in enumerate((1, RUN_THREADS)):
            with ThreadPoolExecutor(threads) as pool:
                began = time.process_time()
                for _ in pool.map(way.forward, batches):
                    pass
                total[place] += time.process_time() - began
    return total


def run_once(photos: Path, labels: Path, folder: Path) -> dict[str, float]:
    """A whole run: CPU seconds and seconds."""
    command = [sys.executable, "-m", "protocon", "train", str(photos), "--labels", str(labels), "--frozen"]
    command += ["--out", str(folder / "runs"), f"run.cache={folder / 'cache'}"]
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    began = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=kept) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} ended with exit code {process.returncode}")
    return {"cpu": used.ru_utime + used.ru_stime, "s": time.monotonic() - began}


def step_milliseconds(config: RunConfig, rounds: int) -> Iterator[float]:
    """CPU milliseconds of a step of the heads on one thread, means over epochs, at the default size."""
    torch.set_num_threads(1)
    session = prepare(config)
    trainer = build_trainer(session, build_fabric(config))
    steps = session.resolved.steps_per_epoch
    display = Display(Console(quiet=True), title="", total_epochs=rounds + 1, steps_per_epoch=steps)
    for epoch in range(rounds + 1):
        began = time.process_time()
        trainer.train_epoch(epoch, display, meter=trainer.meter(epoch))
        if epoch:  # the first warms up
            yield 1000 * (time.process_time() - began) / steps


def measure(photos: Path, labels: Path, *, rounds: int, scratch: Path) -> dict[str, Any]:
    """Ratios of `rounds` rounds, each interleaved with bare forward passes."""
    console = Console(stderr=True)
    compileall.compile_dir(Path(protocon.__file__).parent, quiet=2)  # as pip does when it installs the package
    cold, warm, bare = [], [], []
    cache = scratch / "own"
    config = config_for(photos, labels, cache)
    settled = settle(config, load_data(config))
    for number in range(rounds):
        before = forward_seconds(settled)
        folder = scratch / str(number)
        cold.append(run_once(photos, labels, folder))
        warm.append(run_once(photos, labels, folder))
        bare.append((before + forward_seconds(settled)) / 2)
        one, several = bare[-1]
        console.print(
            f"round {number + 1} of {rounds}: {cold[-1]['cpu']:.1f} against {one:.1f} and {several:.1f} CPU s"
        )
    steps = list(step_milliseconds(config, 10))
    return {
        "images": len(settled.bundle.train),
        "forward_cpu_s": round(statistics.median(b[0] for b in bare), 2),
        "forward_in_threads_cpu_s": round(statistics.median(b[1] for b in bare), 2),
        **{f"cold_{kind}": round(statistics.median(run[kind] for run in cold), 2) for kind in cold[0]},
        **{f"warm_{kind}": round(statistics.median(run[kind] for run in warm), 2) for kind in warm[0]},
        **{
            name: round(statistics.median(run["cpu"] / b[place] for run, b in zip(cold, bare, strict=True)), 2)
            for place, name in enumerate(("cold_over_forward", "cold_over_forward_in_threads"))
        },
        "step_ms": round(statistics.median(steps), 2),
        "steps": settled.resolved.total_epochs * settled.resolved.steps_per_epoch,
        "rounds": rounds,
        "load": round(os.getloadavg()[0], 1),
    }


def main() -> None:
    """Print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--photos", type=Path, default=None)
    parser.add_argument("--labels", type=Path, default=None)
    parser.add_argument("--quick", action="store_true", help="one round")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as scratch:
        photos, labels = arguments.photos, arguments.labels
        if photos is None or labels is None:
            photos = Path(scratch) / "photos"
            labels = draw_photos(photos)
        rounds = 1 if arguments.quick else 3
        print(json.dumps(measure(photos, labels, rounds=rounds, scratch=Path(scratch))))


if __name__ == "__main__":
    main()
