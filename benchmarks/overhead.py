"""What ProtoCon's own parts cost: its step against FixMatch's with distribution alignment, at CIFAR size.

    python benchmarks/overhead.py [--quick]

prints one JSON object. Both are whole steps as `protocon train` makes them (WRN-28-2, B = 64, μ = 7, one thread) in one
process, in turn; the figure is the median over rounds of each round's ratio in CPU time. The clustering of one batch of
ImageNet's size is measured too (see clustering.py).
"""

import argparse
import json
import statistics
import sys
from pathlib import Path

import torch
from rich.console import Console

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # so that one benchmark finds another

from benchmarks.clustering import SIZES
from benchmarks.clustering import measure as measure_clustering
from benchmarks.step import build_steps, cpu_seconds, random_data
from protocon.base.allocator import restart_to_keep_memory


def main() -> None:
    """Print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="four rounds: about three minutes on one core")
    rounds = 4 if parser.parse_args().quick else 12
    restart_to_keep_memory()  # as the command line does
    torch.set_num_threads(1)
    console = Console(stderr=True)
    data = random_data()
    steps = {method: build_steps(method, data) for method in ("protocon", "fixmatch-da")}
    ratios, seconds = [], []
    for number in range(rounds + 1):
        # Who goes first alternates: the second finds warmer caches.
        order = list(steps) if number % 2 else list(reversed(steps))
        taken = {method: cpu_seconds(steps[method]) for method in order}
        console.print(f"round {number} of {rounds}: {taken}", highlight=False)
        if number:
            ratios.append(taken["protocon"] / taken["fixmatch-da"])
            seconds.append(taken)
    with torch.no_grad():
        clustering = measure_clustering(**SIZES["imagenet"], rounds=9)
    print(
        json.dumps(
            {
                "ratio_to_fixmatch": round(statistics.median(ratios), 4),
                "ratios": [round(ratio, 4) for ratio in ratios],
                "kmeans_ms_imagenet": clustering["ms"],
                "cpu_seconds": {name: round(statistics.median(s[name] for s in seconds), 2) for name in steps},
                "rounds": rounds,
                "torch": torch.__version__,
            }
        )
    )


if __name__ == "__main__":
    main()
