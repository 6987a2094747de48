"""Is memory flat? Over 200 epochs of digits, and over a streamed pass of 50,000 real image files.

    python -m benchmarks.memory --cifar10 /path/to/cifar10.zip
    python -m benchmarks.memory --photos photos/ --labels labels.csv

The second form asks how much a run on a frozen encoder takes, `train photos/ --labels labels.csv`: from an empty cache,
then with the features cached, each beside what `--dry-run` says. That is the most resident memory of the command and of
all processes that it starts, at any moment (pages that they share count once for each, so it is an upper bound).

The archive's training images (PNG) are unpacked into a temporary folder, every second one as JPEG. Without the archive
that part is left out, and the output says so. Memory is the process's own plus its loader processes', private pages
only (a page that forks share counts once). Prints one JSON object; `--plot FILE.png` draws the curves.
"""

import argparse
import io
import json
import statistics
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

from protocon.data.labels.label_split import make_split
from protocon.data.loading.loader import Loader
from protocon.data.registry import DATASETS
from protocon.data.source_options import SourceOptions
from protocon.engine.loop.trainer import Trainer
from tests.engine.runs import small_run

FLAT = 0.05
"""The largest rise or fall of the last tenth against the second, as a share."""
PAGE_KIB = 1024.0


def used_mib() -> float:
    """Private memory of this process and of its children, and the shared pages once."""
    own = Path("/proc/self")
    children = (own / "task" / str(_pid()) / "children").read_text().split()
    total = _fields(own / "smaps_rollup", "Private_Clean", "Private_Dirty", "Shared_Dirty")
    for child in children:
        file = Path("/proc") / child / "smaps_rollup"
        try:
            total += _fields(file, "Private_Clean", "Private_Dirty")
        except OSError:
            continue  # it has just ended
    return total / PAGE_KIB


def _pid() -> int:
    return int(Path("/proc/self").resolve().name)


def _fields(file: Path, *names: str) -> int:
    """Their sum. The file is read once: each time, the system walks through all memory of the process."""
    lines = (line.split() for line in file.read_text().splitlines())
    return sum(int(words[1]) for words in lines if words[0].rstrip(":") in names)


def drift(samples: list[float]) -> float:
    """Change from the second tenth (the first one warms up) to the last, by medians, as a share."""
    tenth = max(1, len(samples) // 10)
    early, late = statistics.median(samples[tenth : 2 * tenth]), statistics.median(samples[-tenth:])
    return late / early - 1.0


def digits(epochs: int, note: Callable[[float], None]) -> list[float]:
    """Memory after every epoch of a run on digits, with test, checkpoint and log as in any run."""
    samples: list[float] = []
    evaluate = Trainer.evaluate

    def watched(self: Trainer, epoch: int) -> dict[str, float]:
        row = evaluate(self, epoch)
        samples.append(used_mib())
        note(samples[-1])
        return row

    Trainer.evaluate = watched  # type: ignore[method-assign]
    try:
        with tempfile.TemporaryDirectory() as out:
            small_run(Path(out), f"epochs={epochs}", "mu=4", "tensorboard=true")
    finally:
        Trainer.evaluate = evaluate  # type: ignore[method-assign]
    return samples


def unpack(archive: Path, folder: Path, count: int) -> None:
    """The first `count` training images, by turns as PNG (as they are) and as JPEG."""
    with zipfile.ZipFile(archive) as file:
        names = sorted(name for name in file.namelist() if "/train/" in name and name.endswith(".png"))
        for number, name in enumerate(names[:count]):
            content = file.read(name)
            place = folder / Path(name).parent.name / f"{number:05d}.png"
            place.parent.mkdir(exist_ok=True)
            if number % 2:
                image = Image.open(io.BytesIO(content)).convert("RGB")
                image.save(place.with_suffix(".jpg"), quality=95)
            else:
                place.write_bytes(content)


def streamed(folder: Path, workers: int) -> tuple[list[float], dict[str, Any]]:
    """Memory after every step of one pass over all files, decoded as they are needed."""
    bundle = DATASETS["imagefolder"](SourceOptions(root=folder, image_size=32, storage="stream"))
    split = make_split(bundle.train, per_class=4)
    loader = Loader(bundle.train, split, batch_size=64, mu=7, seed=0, device=torch.device("cpu"), workers=workers)
    samples, seen, began = [], 0, time.monotonic()
    for batch in loader.epoch(0):
        seen += len(batch.index)
        samples.append(used_mib())
    whole = bundle.train.nbytes / 2**20
    facts = {
        "files": seen,
        "steps": len(samples),
        "workers": workers,
        "seconds": round(time.monotonic() - began, 1),
        "all_images_decoded_would_be_mib": round(whole, 1),
    }
    return samples, facts


def resident_mib(pid: int) -> float:
    """Resident memory of a process and of all below it; 0 once it has ended."""
    total, waiting = 0, [pid]
    while waiting:
        place = Path("/proc") / str(waiting.pop())
        try:
            total += _fields(place / "status", "VmRSS")
            waiting += [int(child) for task in (place / "task").iterdir() for child in _children(task)]
        except OSError:
            continue  # it has just ended
    return total / PAGE_KIB


def _children(task: Path) -> list[str]:
    return (task / "children").read_text().split()


def peak_mib(command: list[str], log: Path) -> float:
    """The most memory that a command takes, looked at ten times a second."""
    most = 0.0
    with log.open("w") as out, subprocess.Popen(command, stdout=out, stderr=out) as running:
        while running.poll() is None:
            most = max(most, resident_mib(running.pid))
            time.sleep(0.1)
    if running.returncode:
        raise RuntimeError(log.read_text())
    return most


STATES = ("empty cache", "features cached")


def frozen(
    photos: Path,
    labels: Path,
    scratch: Path,
    cache: Path | None = None,
    *,
    settings: Sequence[str] = (),
    states: Sequence[str] = STATES,
) -> dict[str, Any]:
    """Most memory of `train photos --labels labels`, from an empty cache and from a full one, beside its estimate.

    Args:
        photos: folder of images.
        labels: of some of them.
        scratch: where runs go.
        cache: of features; one that lacks some chunks is a cold start, too, and a shorter one.
        settings: that differ from the usual ones.
        states: of the cache, one run for each.
    """
    cache, log = cache or scratch / "cache", scratch / "log"
    train = [sys.executable, "-m", "protocon", "train", str(photos), "--labels", str(labels), f"run.cache={cache}"]
    train += settings
    facts: dict[str, Any] = {}
    for state in states:
        plan = json.loads(subprocess.run([*train, "--dry-run", "--json"], capture_output=True, check=True).stdout)
        facts["images"] = plan["sizes"]["labelled"] + plan["sizes"]["unlabelled"]
        estimated = float(plan["memory"]["total"].split()[0])
        measured = peak_mib([*train, "--out", str(scratch / "runs")], log)
        facts[state] = {
            "estimated_mib": round(estimated),
            "measured_mib": round(measured),
            "estimate_is_off_by_percent": round(100 * (estimated / measured - 1), 1),
        }
    return facts


def describe(samples: list[float]) -> dict[str, Any]:
    """Least, most and drift; more than 5 % of it is an error."""
    share = drift(samples)
    return {
        "least_mib": round(min(samples), 1),
        "most_mib": round(max(samples), 1),
        "drift_percent": round(100 * share, 2),
        "flat": abs(share) <= FLAT,
    }


def _parts(arguments: argparse.Namespace) -> Iterator[tuple[str, list[float], dict[str, Any]]]:
    samples = digits(arguments.epochs, lambda _: None)
    yield f"{arguments.epochs} epochs of digits", samples, {}
    if arguments.cifar10 is None or not arguments.cifar10.is_file():
        yield "streaming", [], {"skipped": f"no archive: {arguments.cifar10 or 'give --cifar10 FILE'}"}
        return
    with tempfile.TemporaryDirectory(dir=arguments.scratch) as folder:
        unpack(arguments.cifar10, Path(folder), arguments.files)
        samples, facts = streamed(Path(folder), arguments.workers)
        yield "one streamed pass", samples, facts


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cifar10", type=Path, default=None)
    parser.add_argument("--scratch", type=Path, default=None, help="where the files are unpacked")
    parser.add_argument("--epochs", type=int, default=200)
    parser.add_argument("--files", type=int, default=50_000)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--photos", type=Path, default=None, help="ask about a run on a frozen encoder instead")
    parser.add_argument("--labels", type=Path, default=None, help="labels of some of the photos")
    parser.add_argument("--cache", type=Path, default=None, help="with --photos: a cache to start from")
    parser.add_argument("--plot", type=Path, default=None)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if arguments.photos is not None:
        labels = arguments.labels or arguments.photos / "labels.csv"
        with tempfile.TemporaryDirectory(dir=arguments.scratch) as folder:
            print(json.dumps(frozen(arguments.photos, labels, Path(folder), arguments.cache), indent=2))
        return
    result: dict[str, Any] = {}
    curves: dict[str, list[float]] = {}
    for name, samples, facts in _parts(arguments):
        result[name] = facts | (describe(samples) if samples else {})
        if samples:
            curves[name] = samples
    if arguments.plot is not None:
        draw(curves, arguments.plot)
    print(json.dumps(result, indent=2))


def draw(curves: dict[str, list[float]], file: Path) -> None:
    """One small picture a curve, from zero."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(curves), figsize=(4.2 * len(curves), 2.4), squeeze=False)
    for axis, (name, samples) in zip(axes[0], curves.items(), strict=True):
        axis.plot(np.arange(len(samples)), samples, linewidth=1)
        axis.set(title=name, ylabel="MiB", ylim=(0, 1.15 * max(samples)))
        axis.set_xlabel("epoch" if "epoch" in name else "step")
    figure.tight_layout()
    figure.savefig(file, dpi=90)


if __name__ == "__main__":
    main()
