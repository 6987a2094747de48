"""ProtoCon's options beyond the paper against NumPy: thresholds by class, relative confidence, a running prior.

There is one cluster, whose label the test sets, so that the refined label is known without any clustering.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from protocon.core.alignment import DistributionAlignment
from protocon.core.running_prior import FollowingAlignment, RunningPrior
from protocon.errors import ConfigError
from protocon.methods.base import Problem
from protocon.methods.needs import Facts
from protocon.methods.protocon import ProtoCon
from protocon.methods.protocon_config import ProtoConConfig
from protocon.paper.paper_cells import paper_cells
from protocon.settings.config import build_config
from protocon.types import Batch, Outputs, Progress
from tests import reference
from tests.core.inputs import as_float32, floats, ints, numpy64, unit_rows
from tests.methods import harness
from tests.methods.reference_methods import flexible_thresholds, freematch_state

CLASSES, DIM, POPULATION, ROWS, LABELLED = 3, 5, 24, 8, 3
ALPHA, TAU = 0.8, 0.7
Z = np.array([0.6, 0.3, 0.1])
"""The cluster's label."""
STEP = Progress(epoch=1, step=3, total_epochs=9, total_steps=27)


def network(images: Tensor) -> Outputs:
    """A network whose images are their own outputs, so that a test decides what it says."""
    return Outputs(images[:, :CLASSES], images[:, CLASSES:])


def protocon(**settings: Any) -> ProtoCon:
    """The method with one cluster, and without alignment unless asked for."""
    asked: dict[str, Any] = {"threshold": TAU, "alpha": ALPHA, "neighbours": POPULATION, "alignment": "none"} | settings
    config = ProtoConConfig(**asked).settled(Facts(POPULATION, CLASSES), {})
    method = ProtoCon(config, Problem(CLASSES, POPULATION, torch.arange(CLASSES), projection_dim=DIM))
    method.cluster_table.copy_(floats(Z))
    return method


def images(rng: np.random.Generator, rows: int) -> reference.Floats:
    logits = as_float32(2 * rng.normal(size=(rows, CLASSES)))
    return np.concatenate([logits, unit_rows(rng, rows, DIM)], axis=1)


def batches(count: int, seed: int = 0) -> list[tuple[Batch, reference.Floats]]:
    """Batches, and what the classifier says of their weak views."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(count):
        weak, strong = images(rng, ROWS), images(rng, ROWS)
        batch = Batch(
            labelled=floats(images(rng, LABELLED)),
            targets=torch.arange(LABELLED),
            labelled_index=torch.arange(LABELLED),
            weak=floats(weak),
            strong=(floats(strong),),
            index=ints(rng.permutation(POPULATION)[:ROWS]),
        )
        found.append((batch, np.array([reference.softmax(row) for row in weak[:, :CLASSES]])))
    return found


def follow(method: ProtoCon, past: Sequence[tuple[Batch, reference.Floats]]) -> None:
    for batch, _ in past:
        method.commit(method.step(network, network, batch, STEP).rows, STEP)


def mixed(probs: reference.Floats) -> reference.Floats:
    return np.array([ALPHA * row + (1 - ALPHA) * Z for row in probs])


def check(method: ProtoCon, now: tuple[Batch, reference.Floats], reliable: np.ndarray) -> None:
    """The step takes exactly these labels, as they are, and leaves the others to the self-supervised loss."""
    batch, probs = now
    assert 0 < reliable.mean() < 1
    step = method.step(network, network, batch, STEP)
    np.testing.assert_array_equal(step.rows["reliable"].numpy(), reliable)
    weak, strong = numpy64(batch.weak), numpy64(batch.strong[0])
    loss_u = reference.unlabelled_loss(strong[:, :CLASSES], mixed(probs), reliable)
    loss_c = reference.consistency_loss(weak[:, CLASSES:], strong[:, CLASSES:], reliable, temperature=0.1)
    assert step.terms["loss_u"].item() == pytest.approx(loss_u, rel=1e-4)
    assert step.terms["loss_c"].item() == pytest.approx(loss_c, rel=1e-3)


def test_relative_confidence_is_that_divided_by_the_largest_possible() -> None:
    (now,) = batches(1)
    confidence = mixed(now[1]).max(axis=1)
    fixed, relative = confidence >= TAU, confidence / (ALPHA + (1 - ALPHA) * 0.6) >= TAU
    assert (fixed != relative).any()
    check(protocon(), now, fixed)
    check(protocon(confidence="relative"), now, relative)


def test_a_certain_classifier_reaches_the_threshold_in_a_mixed_cluster_only_if_relative() -> None:
    sure = torch.zeros(ROWS, CLASSES + DIM)
    sure[:, 0], sure[:, -1] = 50.0, 1.0
    (batch, _), *_ = batches(1)
    batch = Batch(batch.labelled, batch.targets, batch.labelled_index, sure, (sure,), batch.index)
    for word, share in (("refined", 0.0), ("relative", 1.0)):  # 0.8 + 0.2 · 0.6 = 0.92
        step = protocon(confidence=word, threshold=0.95).step(network, network, batch, STEP)
        assert step.terms["retention"].item() == share


def test_flexible_thresholds_follow_the_refined_labels_on_record() -> None:
    *past, now = batches(7)
    method = protocon(thresholds="flexible")
    follow(method, past)
    record = np.full(POPULATION, -1)
    for batch, probs in past:
        refined = mixed(probs)
        sure = refined.max(axis=1) >= TAU
        record[batch.index.numpy()[sure]] = refined.argmax(axis=1)[sure]
    thresholds = flexible_thresholds(record, CLASSES, tau=TAU, warm_up=True, convex=True)
    assert 0 < thresholds.min() < thresholds.max()
    refined = mixed(now[1])
    check(method, now, refined.max(axis=1) >= thresholds[refined.argmax(axis=1)])
    published = method.end_epoch(STEP)
    assert published["lowest_threshold"] == pytest.approx(thresholds.min(), abs=1e-6)
    assert published["highest_threshold"] == pytest.approx(thresholds.max(), abs=1e-6)


@pytest.mark.parametrize("relative", [False, True])
def test_adaptive_thresholds_are_the_mean_confidence_lower_for_rare_classes(relative: bool) -> None:
    *past, now = batches(7, seed=3)
    method = protocon(
        thresholds="adaptive", threshold_momentum=0.7, confidence="relative" if relative else "refined", threshold=0.01
    )
    follow(method, past)
    scale = ALPHA + (1 - ALPHA) * 0.6 if relative else 1.0
    level, marginal, _ = freematch_state([mixed(probs) / scale for _, probs in past], CLASSES, 0.7)
    judged = mixed(now[1]) / scale
    check(method, now, judged.max(axis=1) >= (marginal / marginal.max() * level)[judged.argmax(axis=1)])


def test_thresholds_by_class_and_one_that_gives_way_exclude_each_other() -> None:
    with pytest.raises(ConfigError, match="set one of the two"):
        protocon(thresholds="flexible", min_retention=0.2)
    frozen = ProtoConConfig(thresholds="flexible").settled(Facts(POPULATION, CLASSES, frozen=True), {})
    assert frozen.min_retention == 0


def test_a_running_prior_is_em_batch_by_batch() -> None:
    rng = np.random.default_rng(1)
    source = np.array([0.5, 0.3, 0.2])
    part = RunningPrior(floats(source), momentum=0.8, weight=0.25)
    estimate = np.full(CLASSES, 1 / CLASSES)
    for _ in range(5):
        probs = rng.dirichlet(np.ones(CLASSES), size=6)
        rows = []
        for row in probs:
            shifted = [row[c] * estimate[c] / source[c] for c in range(CLASSES)]
            rows.append([value / sum(shifted) for value in shifted])
        estimate = 0.8 * estimate + 0.2 * np.mean(rows, axis=0)
        part.update(floats(probs))
    np.testing.assert_allclose(numpy64(part.estimate), estimate, atol=1e-6)
    np.testing.assert_allclose(numpy64(part()), 0.25 * estimate + 0.75 / CLASSES, atol=1e-6)


def test_a_running_prior_finds_the_frequencies_that_a_mean_of_predictions_misses() -> None:
    """A calibrated classifier of balanced classes looks at classes that are not: x ~ N(c, 1)."""
    rng = np.random.default_rng(0)
    truth = np.array([0.7, 0.2, 0.1])
    part = RunningPrior(torch.full((CLASSES,), 1 / CLASSES), momentum=0.98, weight=1.0)
    means = []
    for _ in range(600):
        x = rng.choice(CLASSES, size=64, p=truth) + rng.normal(size=64)
        likelihood = np.exp(-0.5 * (x[:, None] - np.arange(CLASSES)) ** 2)
        probs = likelihood / likelihood.sum(axis=1, keepdims=True)
        means.append(probs.mean(axis=0))
        part.update(floats(probs))
    assert np.abs(numpy64(part()) - truth).sum() < 0.1
    assert np.abs(np.mean(means, axis=0) - truth).sum() > 0.3


def test_alignment_follows_the_running_prior() -> None:
    following = FollowingAlignment(
        DistributionAlignment(CLASSES, prior=torch.full((CLASSES,), 1 / CLASSES)),
        RunningPrior(torch.full((CLASSES,), 1 / CLASSES), momentum=0.5, weight=0.5),
    )
    probs = np.array([[0.8, 0.1, 0.1], [0.6, 0.3, 0.1]])
    following.update(floats(probs))
    mean = probs.mean(axis=0)
    wanted = 0.5 * (0.5 / CLASSES + 0.5 * mean) + 0.5 / CLASSES
    np.testing.assert_allclose(numpy64(following(floats(probs))), reference.align(probs, mean, wanted), atol=1e-6)


@pytest.mark.parametrize("method", ["protocon", "fixmatch-da", "comatch", "simmatch"])
@pytest.mark.parametrize("alignment", ["mean", "dual"])
def test_methods_that_align_can_follow_a_running_prior(method: str, alignment: str) -> None:
    run = harness.Run(harness.build(method, class_prior="running", prior_momentum=0.5, alignment=alignment))
    for _ in range(6):
        run.advance()
    following = run.method.alignment
    assert isinstance(following, FollowingAlignment)
    prior = following.prior
    assert prior is not None
    assert float(prior.sum()) == pytest.approx(1.0, abs=1e-5)
    assert float((prior - 1 / harness.CLASSES).abs().max()) > 1e-3


def test_the_papers_recipes_have_none_of_this() -> None:
    cells = [cell for cell in paper_cells().values() if cell.method.method == "protocon"]
    assert len(cells) > 20
    for cell in cells:
        method = build_config(recipe=cell.name).method.settled(Facts(50_000, 10, balanced=True), {})
        assert isinstance(method, ProtoConConfig)
        assert (method.thresholds, method.confidence, method.min_retention) == ("fixed", "refined", 0), cell.name
        assert method.class_prior in ("uniform", "labels"), cell.name
