"""The parts of the core together: two epochs of Algorithm 1's bookkeeping against the reference."""

from dataclasses import dataclass

import numpy as np
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from torch import Tensor

from protocon.core.alignment import DistributionAlignment
from protocon.core.bank import SampleBank
from protocon.core.kmeans import ConstrainedKMeans
from protocon.core.prototypes import ClassPrototypes
from protocon.core.refine import cluster_labels, refine
from tests import reference
from tests.core.inputs import CLEAR, distributions, floats, ints, numpy64, quick, seeds, unit_rows

CLASSES, CLUSTERS, DIM, POPULATION, BATCH = 3, 4, 5, 24, 8
SETTINGS = {"gamma": 0.9 * POPULATION / CLUSTERS, "population": POPULATION, "dual_rate": 0.3}


@dataclass
class Parts:
    """The stateful parts as a method holds them."""

    kmeans: ConstrainedKMeans
    prototypes: ClassPrototypes
    bank: SampleBank
    alignment: DistributionAlignment
    labels: Tensor

    def epoch(self, steps: list[reference.StepInput], *, alpha: float, threshold: float, warmup: bool) -> list[Tensor]:
        """Algorithm 1 as the paper's box has it, with our parts."""
        refined_rows = []
        for step in steps:
            q, p = floats(step.weak_embeddings), floats(step.weak_probs)
            found = self.kmeans.assign(q)
            heads = torch.arange(found.index.shape[1])
            z = self.labels[heads, found.index].mean(dim=1)
            refined = refine(self.alignment(p), z, alpha)
            confidence, label = refined.max(dim=1)
            reliable = confidence >= threshold
            self.kmeans.update(q, found.index, move_centroids=warmup)
            self.alignment.update(p)
            self.bank.write(
                ints(step.index),
                label=label,
                reliable=reliable,
                assignment=found.index,
                similarity=found.similarity,
            )
            self.prototypes.add(floats(step.labelled_embeddings), ints(step.targets))
            self.prototypes.add(q, label, reliable)
            refined_rows.append(refined)
        self.kmeans.end_epoch(move_centroids=not warmup)
        self.prototypes.publish()
        self.labels = torch.stack(
            [
                cluster_labels(self.bank.label, a, s, clusters=CLUSTERS, classes=CLASSES)
                for a, s in zip(self.bank.assignment.T, self.bank.similarity.T, strict=True)
            ]
        )
        return refined_rows


def network_outputs(rng: np.random.Generator) -> list[reference.StepInput]:
    """One epoch of what a network could say; every sample once."""
    order = rng.permutation(POPULATION)
    return [
        reference.StepInput(
            labelled_embeddings=unit_rows(rng, 3, DIM),
            targets=rng.integers(0, CLASSES, size=3),
            weak_probs=distributions(rng, BATCH, CLASSES),
            weak_embeddings=unit_rows(rng, BATCH, DIM),
            index=order[start : start + BATCH],
        )
        for start in range(0, POPULATION, BATCH)
    ]


def decided(records: list[reference.StepRecord], threshold: float) -> bool:
    """Whether every discrete choice is clear enough that float32 and float16 must make the same."""
    for record in records:
        top = np.sort(record.refined, axis=1)
        near_tie = (top[:, -1] - top[:, -2]).min() < 3e-3
        near_threshold = np.abs(top[:, -1] - threshold).min() < 3e-3
        if record.margin.min() < 100 * CLEAR or near_tie or near_threshold:
            return False
    return True


@quick
@given(seed=seeds, heads=st.integers(1, 2), warmup=st.booleans(), windowed=st.booleans())
def test_two_epochs_of_algorithm_1(seed: int, heads: int, warmup: bool, windowed: bool) -> None:
    rng = np.random.default_rng(seed)
    alpha, threshold, window = 0.8, 0.6, 2 if windowed else 32
    parts = Parts(
        ConstrainedKMeans(clusters=CLUSTERS, dim=DIM, heads=heads, seed=seed % 97, **SETTINGS),  # type: ignore[arg-type]
        ClassPrototypes(CLASSES, DIM),
        SampleBank(POPULATION, classes=CLASSES, clusters=CLUSTERS, heads=heads),
        DistributionAlignment(CLASSES, window=window),
        torch.full((heads, CLUSTERS, CLASSES), 1 / CLASSES),
    )
    settings = reference.Settings(
        classes=CLASSES,
        clusters=CLUSTERS,
        threshold=threshold,
        alpha=alpha,
        window=window,
        move_every_batch=warmup,
        **SETTINGS,  # type: ignore[arg-type]
    )
    state = reference.fresh_state(numpy64(parts.kmeans.centroids), classes=CLASSES, population=POPULATION)
    state.prototypes = numpy64(parts.prototypes.prototypes)
    for _ in range(2):
        steps = network_outputs(rng)
        records = reference.run_epoch(state, steps, settings)
        assume(decided(records, threshold))
        refined = parts.epoch(steps, alpha=alpha, threshold=threshold, warmup=warmup)
        for ours, record in zip(refined, records, strict=True):
            np.testing.assert_allclose(numpy64(ours), record.refined, atol=1e-3)
        compare(parts, state)


def compare(parts: Parts, state: reference.State) -> None:
    np.testing.assert_array_equal(parts.bank.label.numpy(), state.label)
    np.testing.assert_array_equal(parts.bank.reliable.numpy(), state.reliable)
    np.testing.assert_array_equal(parts.bank.assignment.numpy(), state.assignment)
    np.testing.assert_allclose(numpy64(parts.bank.similarity), state.similarity, atol=2e-3)
    np.testing.assert_allclose(numpy64(parts.kmeans.duals), state.duals, atol=1e-5)
    np.testing.assert_allclose(numpy64(parts.kmeans.centroids), state.centroids, atol=1e-3)
    np.testing.assert_allclose(numpy64(parts.prototypes.prototypes), state.prototypes, atol=1e-3)
    np.testing.assert_allclose(numpy64(parts.labels), state.cluster_labels, atol=2e-2)
