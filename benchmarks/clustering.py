"""Constrained K-means of one batch: assignment, duals and running sums.

    python benchmarks/clustering.py [--quick]

prints one JSON object: milliseconds a batch (CPU time, one thread, median), at the sizes of the paper's data sets and
beyond, and next to each what the bare matrix product of the batch with the centroids takes, interleaved.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable

import torch
import torch.nn.functional as F

from protocon.core.kmeans import ConstrainedKMeans

SIZES = {
    "cifar": {"rows": 448, "dim": 64, "clusters": 250, "population": 50_000},
    "imagenet": {"rows": 640, "dim": 128, "clusters": 4_800, "population": 1_281_167},
    "twenty_times_imagenet": {"rows": 640, "dim": 128, "clusters": 96_000, "population": 25_600_000},
}


def median_ms(runs: list[Callable[[], object]], rounds: int) -> list[float]:
    """Median CPU milliseconds of each, in alternation; the first round warms up."""
    taken: list[list[float]] = [[] for _ in runs]
    for number in range(rounds + 1):
        for run, times in zip(runs, taken, strict=True):
            start = time.process_time()
            run()
            if number:
                times.append(1000 * (time.process_time() - start))
    return [round(statistics.median(times), 2) for times in taken]


def measure(rows: int, dim: int, clusters: int, population: int, rounds: int) -> dict[str, float]:
    """One batch's clustering, in the warm-up (centroids move with it) and after, and the bare product."""
    kmeans = ConstrainedKMeans(
        clusters=clusters, dim=dim, gamma=0.9 * population / clusters, population=population, dual_rate=20.0
    )
    batch = F.normalize(torch.randn(rows, dim, generator=torch.Generator().manual_seed(0)), dim=-1)

    def cluster(move: bool) -> None:
        kmeans.update(batch, kmeans.assign(batch).index, move_centroids=move)

    usual, warm_up, product = median_ms(
        [lambda: cluster(False), lambda: cluster(True), lambda: batch @ kmeans.centroids[0].T], rounds
    )
    return {"ms": usual, "warm_up_ms": warm_up, "bare_product_ms": product}


def main() -> None:
    """Print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    rounds = 7 if parser.parse_args().quick else 51
    torch.set_num_threads(1)
    with torch.no_grad():
        results = {name: measure(**sizes, rounds=rounds) for name, sizes in SIZES.items()}
    print(
        json.dumps(
            {
                "kmeans_ms_cifar": results["cifar"]["ms"],
                "kmeans_ms_imagenet": results["imagenet"]["ms"],
                "sizes": SIZES,
                "batches": results,
                "rounds": rounds,
                "torch": torch.__version__,
            }
        )
    )


if __name__ == "__main__":
    main()
