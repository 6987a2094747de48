"""The whole method against the reference: three epochs of Algorithm 1, state and losses, on given outputs."""

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from torch import Tensor

from protocon.methods.base import Problem
from protocon.methods.needs import Facts
from protocon.methods.protocon import ProtoCon
from protocon.methods.protocon_config import ProtoConConfig
from protocon.types import Batch, Outputs, Progress
from tests import reference
from tests.core.inputs import CLEAR, as_float32, floats, ints, numpy64, quick, seeds, unit_rows

CLASSES, NEIGHBOURS, DIM, POPULATION, BATCH, LABELLED = 3, 6, 5, 24, 8, 3
CLUSTERS = POPULATION // NEIGHBOURS


def network(images: Tensor) -> Outputs:
    """A network whose images are their own outputs, so that a test decides what it says."""
    return Outputs(images[:, :CLASSES], images[:, CLASSES:])


def images(rng: np.random.Generator, rows: int) -> reference.Floats:
    logits = as_float32(2 * rng.normal(size=(rows, CLASSES)))
    return np.concatenate([logits, unit_rows(rng, rows, DIM)], axis=1)


def one_step(rng: np.random.Generator, index: reference.Ints) -> tuple[Batch, reference.StepInput]:
    labelled, weak, strong = images(rng, LABELLED), images(rng, BATCH), images(rng, BATCH)
    targets = rng.integers(0, CLASSES, size=LABELLED)
    batch = Batch(
        labelled=floats(labelled),
        targets=ints(targets),
        labelled_index=torch.arange(LABELLED),
        weak=floats(weak),
        strong=(floats(strong),),
        index=ints(index),
    )
    probs = np.array([reference.softmax(row) for row in weak[:, :CLASSES]])
    return batch, reference.StepInput(labelled[:, CLASSES:], targets, probs, weak[:, CLASSES:], index)


def decided(records: list[reference.StepRecord], threshold: float) -> bool:
    """Whether every discrete choice is clear enough that float32 and float16 must make the same."""
    for record in records:
        top = np.sort(record.refined, axis=1)
        tie = (top[:, -1] - top[:, -2]).min() < 3e-3 or np.abs(top[:, -1] - threshold).min() < 3e-3
        if tie or record.margin.min() < 100 * CLEAR:
            return False
    return True


def losses(batch: Batch, record: reference.StepRecord, protos: reference.Floats) -> dict[str, float]:
    labelled, weak, strong = numpy64(batch.labelled), numpy64(batch.weak), numpy64(batch.strong[0])
    hard = record.refined.argmax(axis=1)
    return {
        "loss_x": reference.supervised_loss(labelled[:, :CLASSES], batch.targets.numpy()),
        "loss_u": reference.unlabelled_loss(strong[:, :CLASSES], record.refined, record.reliable),
        "loss_p": reference.prototypical_loss(strong[:, CLASSES:], protos, hard, temperature=0.1),
        "loss_c": reference.consistency_loss(weak[:, CLASSES:], strong[:, CLASSES:], record.reliable, temperature=0.1),
    }


# Two of three draws have a choice that float32 may make differently; thirty others must pass all the same.
@settings(quick, suppress_health_check=[HealthCheck.filter_too_much])
@given(seed=seeds, heads=st.integers(1, 2), warmup=st.sampled_from([0, 1, 20]))
def test_method_follows_algorithm_1(seed: int, heads: int, warmup: int) -> None:
    rng = np.random.default_rng(seed)
    config = ProtoConConfig(
        threshold=0.6,
        neighbours=NEIGHBOURS,
        dual_rate=0.3,
        heads=heads,
        centroid_warmup=warmup,
        first_epoch="observe",
        prototype_labelled=False,
        alignment_window=4,
    ).settled(Facts(POPULATION, CLASSES), {})
    problem = Problem(
        classes=CLASSES,
        unlabelled=POPULATION,
        labelled_targets=torch.arange(CLASSES),
        projection_dim=DIM,
        seed=seed % 97,
    )
    method = ProtoCon(config, problem)
    state = reference.fresh_state(numpy64(method.kmeans.centroids), classes=CLASSES, population=POPULATION)
    for epoch in range(3):
        order = rng.permutation(POPULATION)
        steps = [one_step(rng, order[i : i + BATCH]) for i in range(0, POPULATION, BATCH)]
        settings = reference.Settings(
            classes=CLASSES,
            clusters=CLUSTERS,
            gamma=0.9 * NEIGHBOURS,
            population=POPULATION,
            dual_rate=0.3,
            threshold=0.6,
            alpha=0.8,
            window=4,
            move_every_batch=epoch < warmup,
        )
        protos = state.prototypes
        records = reference.run_epoch(state, [outputs for _, outputs in steps], settings)
        assume(decided(records, 0.6))
        progress = Progress(epoch=epoch, step=0, total_epochs=3, total_steps=9)
        for (batch, _), record in zip(steps, records, strict=True):
            step = method.step(network, network, batch, progress)
            if epoch == 0:
                assert step.loss is None
            else:
                want = losses(batch, record, protos)
                assert step.loss is not None
                for name, value in want.items():
                    assert step.terms[name].item() == pytest.approx(value, rel=1e-3, abs=1e-3)
                assert step.loss.item() == pytest.approx(sum(want.values()), rel=1e-3, abs=1e-3)
            method.commit(step.rows, progress)
            np.testing.assert_allclose(numpy64(method.kmeans.duals), record.duals, atol=1e-5)
            np.testing.assert_allclose(numpy64(method.kmeans.centroids), record.centroids, atol=1e-3)
        method.end_epoch(progress)
        compare(method, state)


def compare(method: ProtoCon, state: reference.State) -> None:
    np.testing.assert_array_equal(method.bank.label.numpy(), state.label)
    np.testing.assert_array_equal(method.bank.reliable.numpy(), state.reliable)
    np.testing.assert_array_equal(method.bank.assignment.numpy(), state.assignment)
    np.testing.assert_allclose(numpy64(method.bank.similarity), state.similarity, atol=2e-3)
    np.testing.assert_allclose(numpy64(method.kmeans.centroids), state.centroids, atol=1e-3)
    np.testing.assert_allclose(numpy64(method.prototypes.prototypes), state.prototypes, atol=1e-3)
    np.testing.assert_allclose(numpy64(method.cluster_table), state.cluster_labels, atol=3e-3)
