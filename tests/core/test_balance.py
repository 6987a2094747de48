"""Eq. 3: what the constraint is for. Whole runs of the online solver on imbalanced blobs."""

from itertools import pairwise

import numpy as np
import torch

from protocon.core.kmeans import ConstrainedKMeans
from tests import reference
from tests.core.inputs import floats, numpy64, unit_rows

POPULATION, CLUSTERS, DIM, BATCH = 1200, 12, 8, 100


def blobs() -> reference.Floats:
    """Three directions that hold 80, 15 and 5 % of the samples."""
    rng = np.random.default_rng(0)
    centres = unit_rows(rng, 3, DIM)
    which = rng.choice(3, size=POPULATION, p=[0.80, 0.15, 0.05])
    return np.array([reference.unit(row) for row in centres[which] + 0.25 * rng.normal(size=(POPULATION, DIM))])


def run(gamma: float, *, epochs: int, warmup: int) -> tuple[ConstrainedKMeans, reference.Ints]:
    """Cluster sizes in the last epoch of an online run whose last centroids start far from all data."""
    data = floats(blobs())
    kmeans = ConstrainedKMeans(
        clusters=CLUSTERS, dim=DIM, gamma=gamma, population=POPULATION, dual_rate=0.08 * CLUSTERS, seed=1
    )
    kmeans.centroids[0, CLUSTERS // 2 :] = -torch.nn.functional.normalize(data.mean(0), dim=0)
    for epoch in range(epochs):
        order = torch.as_tensor(np.random.default_rng(epoch).permutation(POPULATION))
        chosen = []
        for rows in order.reshape(-1, BATCH):
            index = kmeans.assign(data[rows]).index
            kmeans.update(data[rows], index, move_centroids=epoch < warmup)
            chosen.append(index[:, 0])
        kmeans.end_epoch(move_centroids=epoch >= warmup)
    return kmeans, reference.cluster_sizes(torch.cat(chosen).numpy(), CLUSTERS)


def test_duals_feed_every_cluster_and_without_them_some_starve() -> None:
    gamma = 0.9 * POPULATION / CLUSTERS
    _, sizes = run(gamma, epochs=30, warmup=20)
    assert sizes.min() >= 0.5 * gamma
    free, starved = run(0.0, epochs=30, warmup=20)
    assert not free.duals.any()
    assert starved.min() < 0.1 * gamma
    assert (starved < 0.5 * gamma).sum() >= CLUSTERS // 4


def test_without_constraint_epoch_updates_never_raise_the_objective() -> None:
    data = blobs()
    kmeans = ConstrainedKMeans(clusters=CLUSTERS, dim=DIM, gamma=0.0, population=POPULATION, dual_rate=1.0, seed=2)
    values = []
    for _ in range(8):
        found = kmeans.assign(floats(data))
        values.append(reference.kmeans_objective(data, numpy64(kmeans.centroids[0]), found.index[:, 0].numpy()))
        kmeans.update(floats(data), found.index, move_centroids=False)
        kmeans.end_epoch(move_centroids=True)
    assert all(after <= before + 1e-3 for before, after in pairwise(values))
    assert values[-1] < 0.7 * values[0]
