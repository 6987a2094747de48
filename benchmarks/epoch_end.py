"""The end of an epoch at ImageNet size: how long it takes, and how much memory the bank needs.

python benchmarks/epoch_end.py [--quick]

CPU time, one thread, medians.
"""

import argparse
import json
import statistics
import time

import torch
from torch import Tensor

from protocon.core.bank import SampleBank
from protocon.core.prototypes import ClassPrototypes
from protocon.core.refine import cluster_labels

SIZES = {"samples": 1_281_167, "clusters": 4_800, "classes": 1_000, "dim": 128}
LOOP_CLUSTERS = 48
"""Clusters that the loop is timed on; all cost the same, so the whole is extrapolated from these."""


def filled_bank() -> SampleBank:
    """A bank as it is after an epoch, with random content."""
    generator = torch.Generator().manual_seed(0)
    samples = SIZES["samples"]
    bank = SampleBank(samples, classes=SIZES["classes"], clusters=SIZES["clusters"])
    bank.write(
        torch.arange(samples),
        label=torch.randint(SIZES["classes"], (samples,), generator=generator),
        reliable=torch.rand(samples, generator=generator) > 0.5,
        assignment=torch.randint(SIZES["clusters"], (samples, 1), generator=generator),
        similarity=torch.rand(samples, 1, generator=generator),
    )
    return bank


def loop_over_clusters(label: Tensor, assignment: Tensor, similarity: Tensor, clusters: int) -> list[Tensor]:
    """Eq. 8 as one would first write it: find each cluster's members, sum their weights by class."""
    table = []
    for cluster in range(clusters):
        members = assignment == cluster
        mass = torch.zeros(SIZES["classes"]).index_add_(0, label[members].long(), similarity[members].float())
        table.append(mass / mass.sum())
    return table


def main() -> None:
    """Print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    rounds = 3 if parser.parse_args().quick else 15
    torch.set_num_threads(1)
    bank = filled_bank()
    prototypes = ClassPrototypes(SIZES["classes"], SIZES["dim"])
    prototypes.add(torch.randn(4096, SIZES["dim"]), torch.randint(SIZES["classes"], (4096,)))
    columns = (bank.label, bank.assignment[:, 0], bank.similarity[:, 0])
    ours, loop = [], []
    for _ in range(rounds):
        start = time.process_time()
        table = cluster_labels(*columns, clusters=SIZES["clusters"], classes=SIZES["classes"])
        prototypes.publish()
        middle = time.process_time()
        expected = loop_over_clusters(*columns, LOOP_CLUSTERS)
        ours.append(middle - start)
        loop.append((time.process_time() - middle) * SIZES["clusters"] / LOOP_CLUSTERS)
        torch.testing.assert_close(table[:LOOP_CLUSTERS], torch.stack(expected), atol=1e-5, rtol=1e-3)
    seconds = statistics.median(ours)
    print(
        json.dumps(
            {
                **SIZES,
                "epoch_end_s": round(seconds, 4),
                "loop_s": round(statistics.median(loop), 1),
                "speedup_over_loop": round(statistics.median(loop) / seconds, 1),
                "bytes_per_sample": bank.bytes() / SIZES["samples"],
                "cluster_table_bytes": 4 * SIZES["clusters"] * SIZES["classes"],
                "rounds": rounds,
            }
        )
    )


if __name__ == "__main__":
    main()
