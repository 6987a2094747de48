"""How memory and the cost of a step grow with the data: N = 10⁵ … 10⁸ images, K = N / 250 clusters.

    python benchmarks/scale.py [--quick] [--plot FILE.png]

prints one JSON object. Projections are synthetic (unit vectors of length 64, batches of 448); a step here is all that
ProtoCon does with them besides the network: assignment, duals, running sums, the bank, refinement from the K × C table
(C = 100). `--quick` stops at 10⁷. CPU time, one thread, medians.
"""

import argparse
import json
import statistics
import time
from pathlib import Path

import torch
import torch.nn.functional as F

from protocon.core.bank import SampleBank
from protocon.core.kmeans import ConstrainedKMeans
from protocon.core.refine import cluster_labels, refine

ROWS, DIM, CLASSES, NEIGHBOURS = 448, 64, 100, 250
SIZES = (10**5, 10**6, 10**7, 10**8)


def nbytes(*tensors: torch.Tensor) -> int:
    """Memory of tensors."""
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def measure(samples: int, rounds: int) -> dict[str, float]:
    """Memory of the state, and milliseconds of a step's parts, for N samples."""
    clusters = samples // NEIGHBOURS
    generator = torch.Generator().manual_seed(0)
    kmeans = ConstrainedKMeans(clusters=clusters, dim=DIM, gamma=0.9 * NEIGHBOURS, population=samples, dual_rate=20.0)
    bank = SampleBank(samples, classes=CLASSES, clusters=clusters)
    table = torch.full((clusters, CLASSES), 1.0 / CLASSES)
    probs = torch.rand(ROWS, CLASSES, generator=generator).softmax(-1)
    times: dict[str, list[float]] = {"assign": [], "rest": []}
    for number in range(rounds + 1):
        batch = F.normalize(torch.randn(ROWS, DIM, generator=generator), dim=-1)
        index = torch.randint(samples, (ROWS,), generator=generator)
        start = time.process_time()
        assigned = kmeans.assign(batch)
        middle = time.process_time()
        refined = refine(probs, table[assigned.index[:, 0]], 0.8)
        confidence, label = refined.max(-1)
        bank.write(
            index,
            label=label,
            reliable=confidence >= 0.95,
            assignment=assigned.index,
            similarity=assigned.similarity,
        )
        kmeans.update(batch, assigned.index, move_centroids=False)
        if number:
            times["assign"].append(middle - start)
            times["rest"].append(time.process_time() - middle)
    start = time.process_time()
    cluster_labels(bank.label, bank.assignment[:, 0], bank.similarity[:, 0], clusters=clusters, classes=CLASSES)
    epoch_end = time.process_time() - start
    return {
        "samples": samples,
        "clusters": clusters,
        "bytes_per_sample": bank.bytes() / samples,
        "bank_mib": round(bank.bytes() / 2**20, 1),
        "cluster_state_mib": round(nbytes(*kmeans.buffers(), table) / 2**20, 1),
        "assign_ms": round(1000 * statistics.median(times["assign"]), 2),
        "rest_of_step_ms": round(1000 * statistics.median(times["rest"]), 2),
        "cluster_labels_s": round(epoch_end, 3),
    }


def plot(rows: list[dict[str, float]], path: Path) -> None:
    """Memory and time against N, both axes logarithmic."""
    import matplotlib as mpl

    mpl.use("agg")
    from matplotlib import pyplot as plt

    samples = [row["samples"] for row in rows]
    figure, (memory, cost) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    memory.loglog(samples, [row["bank_mib"] for row in rows], "o-", label="bank")
    memory.loglog(
        samples, [row["cluster_state_mib"] for row in rows], "s--", label=f"clusters (K × (C + 2d), C = {CLASSES})"
    )
    memory.set(xlabel="unlabelled images N", ylabel="MiB", title="Memory")
    cost.loglog(samples, [row["assign_ms"] for row in rows], "o-", label=f"assignment of {ROWS} rows to N/250 clusters")
    cost.loglog(samples, [row["rest_of_step_ms"] for row in rows], "s--", label="duals, sums, bank, refinement")
    cost.set(xlabel="unlabelled images N", ylabel="ms a step (one thread)", title="Cost of a step, network aside")
    for axes in (memory, cost):
        axes.grid(alpha=0.3)
        axes.legend(frameon=False, fontsize=8)
    figure.savefig(path, dpi=110)


def main() -> None:
    """Print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="up to ten million samples")
    parser.add_argument("--plot", type=Path, help="draw the result into this PNG file")
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    sizes, rounds = (SIZES[:3], 5) if chosen.quick else (SIZES, 9)
    with torch.no_grad():
        rows = [measure(samples, rounds) for samples in sizes]
    if chosen.plot:
        plot(rows, chosen.plot)
    print(
        json.dumps(
            {
                "bytes_per_sample": max(row["bytes_per_sample"] for row in rows),
                "rows": rows,
                "batch": ROWS,
                "dim": DIM,
                "classes": CLASSES,
                "torch": torch.__version__,
            }
        )
    )


if __name__ == "__main__":
    main()
