"""Run the benchmarks of speed and draw `RESULTS.md` from their results.

    python benchmarks/run_all.py            # the quick form of all: about twenty minutes on one core
    python benchmarks/run_all.py --full
    python benchmarks/run_all.py --only augment,clustering
    python benchmarks/run_all.py --render   # only draw, from the results that are there

Every result is written to `results/NAME.json` with the command that made it.
"""

import argparse
import json
import platform
import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results"


@dataclass(frozen=True)
class Figure:
    """One number of a result, and what it is meant to be."""

    benchmark: str
    key: str
    meaning: str
    aim: float
    at_most: bool

    def met(self, value: float) -> bool:
        """Whether the aim is reached."""
        return value <= self.aim if self.at_most else value >= self.aim


FIGURES = (
    Figure("step", "ratio_to_peer_step", "whole step ÷ joint NCHW pass of 960 images", 0.45, True),
    Figure("step", "ratio_to_encoder", "whole step ÷ the encoder's own work", 1.06, True),
    Figure("augment", "ratio_to_pil_32", "pairs a second ÷ PIL's, 32 px, RandAugment", 10, False),
    Figure("augment", "ratio_to_pil_224_randaugment", "pairs a second ÷ PIL's, 224 px, RandAugment", 3, False),
    Figure("augment", "ratio_to_pil_224_simclr", "pairs a second ÷ PIL's, 224 px, SimCLR", 3, False),
    Figure("overhead", "ratio_to_fixmatch", "ProtoCon's step ÷ FixMatch + DA's", 1.02, True),
    Figure("clustering", "kmeans_ms_imagenet", "ms, clustering 640 × 128 into 4,800", 25, True),
    Figure("epoch_end", "epoch_end_s", "s, cluster labels and prototypes at ImageNet size", 0.2, True),
    Figure("epoch_end", "speedup_over_loop", "times faster than a loop over clusters", 100, False),
    Figure("scale", "bytes_per_sample", "bytes of bank a sample, up to the largest N", 10, True),
    Figure("startup", "help_cpu_s", "s of CPU time, protocon --help", 0.5, True),
    Figure("startup", "version_cpu_s", "s of CPU time, protocon --version", 0.5, True),
    Figure("startup", "recipes_cpu_s", "s of CPU time, protocon recipes", 1, True),
    Figure("loader", "ratio_to_torchvision_simclr", "images a second ÷ torchvision's, 224 px, SimCLR", 1.5, False),
    Figure("loader", "ratio_to_torchvision_randaugment", "the same with RandAugment", 1.5, False),
)
NAMES = tuple(dict.fromkeys(figure.benchmark for figure in FIGURES))


def run(name: str, *, quick: bool) -> None:
    """Run one benchmark and keep its result."""
    arguments = [f"benchmarks/{name}.py", *(["--quick"] if quick else [])]
    if name == "scale":
        arguments += ["--plot", "benchmarks/results/scale.png"]
    output = subprocess.run(
        [sys.executable, *arguments], cwd=HERE.parent, check=True, stdout=subprocess.PIPE, text=True
    ).stdout
    result = json.loads(output.strip().splitlines()[-1])
    kept = {
        "command": " ".join(["python", *arguments]),
        "date": datetime.now(UTC).date().isoformat(),
        "machine": machine(),
        **result,
    }
    (RESULTS / f"{name}.json").write_text(json.dumps(kept, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def machine() -> str:
    """Which processor this is, as far as the system tells."""
    info = Path("/proc/cpuinfo")
    names = [line.split(":", 1)[1].strip() for line in info.read_text().splitlines() if line.startswith("model name")]
    return f"{len(names)} × {names[0]}" if names else platform.processor() or platform.machine()


def load(name: str) -> dict[str, Any] | None:
    """The last result of a benchmark."""
    file = RESULTS / f"{name}.json"
    if not file.is_file():
        return None
    content: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return content


def render() -> None:
    """Write RESULTS.md and its plot."""
    results = {name: load(name) for name in NAMES}
    lines = [
        "# Results",
        "",
        "Made by `make bench` (`python benchmarks/run_all.py`) from the files in `results/`, which hold commands and",
        "all numbers. One thread; ratios are medians of rounds in which both sides alternate, and carry over to other",
        "machines; seconds and milliseconds do not.",
        "",
        "| benchmark | figure | value | aim | |",
        "|---|---|---|---|---|",
    ]
    reached: list[tuple[Figure, float]] = []
    for figure in FIGURES:
        result = results[figure.benchmark]
        if result is None or figure.key not in result:
            lines.append(f"| {figure.benchmark} | {figure.meaning} | not measured | | |")
            continue
        value = float(result[figure.key])
        reached.append((figure, value))
        sign, mark = ("≤" if figure.at_most else "≥"), ("met" if figure.met(value) else "**missed**")
        lines.append(f"| {figure.benchmark} | {figure.meaning} | {value:g} | {sign} {figure.aim:g} | {mark} |")
    lines += ["", "![How far each figure is from its aim](results/aims.png)", "", "![Scale](results/scale.png)", ""]
    lines += ["| benchmark | command | date | machine |", "|---|---|---|---|"]
    for name, result in results.items():
        if result is not None:
            cells = (f"`{result.get('command', '')}`", result.get("date", ""), result.get("machine", ""))
            lines.append(f"| {name} | {' | '.join(cells)} |")
    (HERE / "RESULTS.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    plot(reached)


def plot(reached: list[tuple[Figure, float]]) -> None:
    """How many times better than its aim each figure is, on a logarithmic axis."""
    import matplotlib as mpl

    mpl.use("agg")
    from matplotlib import pyplot as plt

    better = [f.aim / value if f.at_most else value / f.aim for f, value in reached]
    labels = [f.meaning for f, _ in reached]
    figure, axes = plt.subplots(figsize=(9, 0.42 * len(reached) + 1.2), layout="constrained")
    colours = ["#0072B2" if ratio >= 1 else "#D55E00" for ratio in better]
    axes.barh(labels, [ratio - 1 for ratio in better], left=1, color=colours)
    axes.set_xscale("log")
    ticks = [0.5, 1, 2, 5, 10]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    axes.set_xlim(min(0.45, 0.9 * min(better, default=1)), max(10, 1.1 * max(better, default=1)))
    axes.axvline(1, color="black", linewidth=1)
    axes.invert_yaxis()
    axes.set_xlabel("times better than the aim (right of 1: met)")
    axes.grid(axis="x", alpha=0.3)
    figure.savefig(RESULTS / "aims.png", dpi=110)


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="not the quick forms")
    parser.add_argument("--only", default=",".join(NAMES), help="names, separated by commas")
    parser.add_argument("--render", action="store_true", help="run nothing")
    chosen = parser.parse_args()
    console = Console(stderr=True)
    if not chosen.render:
        names = chosen.only.split(",")
        for number, name in enumerate(names, start=1):
            console.print(f"{name} ({number} of {len(names)})", highlight=False)
            run(name, quick=not chosen.full)
    render()
    console.print(f"written: {HERE / 'RESULTS.md'}", highlight=False)


if __name__ == "__main__":
    main()
