"""FlexMatch and FreeMatch against their equations: thresholds that follow the learning."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from protocon.core.fairness import fairness_loss
from protocon.core.thresholds import FlexibleThresholds, SelfAdaptiveThresholds
from tests.core.inputs import distributions, floats, numpy64, quick, seeds
from tests.methods import reference_methods as reference
from tests.methods.harness import CLASSES, SAMPLES, Run, build, loss_of
from tests.methods.watching import hard, supervised, unlabelled, watch


@pytest.mark.parametrize(("warm_up", "convex"), [(True, True), (False, True), (True, False)])
def test_a_flexmatch_step_is_the_papers_after_some_training(warm_up: bool, convex: bool) -> None:
    run = Run(build("flexmatch", threshold=0.7, warm_up=warm_up, convex=convex))
    past, seen = watch(run, 12)
    record = np.full(SAMPLES, -1)
    for earlier in past:
        for sample, row in zip(earlier.index, earlier.probs, strict=True):
            if row.max() >= 0.7:
                record[sample] = row.argmax()
    thresholds = reference.flexible_thresholds(record, CLASSES, tau=0.7, warm_up=warm_up, convex=convex)
    confidence, label = seen.probs.max(axis=1), seen.probs.argmax(axis=1)
    reliable = (confidence >= thresholds[label]).astype(np.float64)
    assert 0 < thresholds.min() < thresholds.max() <= 0.7
    assert 0 < reliable.mean() < 1
    loss_u = unlabelled(hard(seen.probs), reliable, seen.strong_logits[0])
    step = run.look()
    assert float(step.terms["retention"]) == pytest.approx(reliable.mean())
    assert loss_of(step) == pytest.approx(supervised(seen) + loss_u, abs=1e-5)


@quick
@given(seed=seeds, warm_up=st.booleans(), convex=st.booleans(), batches=st.integers(0, 6))
def test_flexible_thresholds_match_reference(seed: int, warm_up: bool, convex: bool, batches: int) -> None:
    rng = np.random.default_rng(seed)
    part = FlexibleThresholds(20, classes=3, threshold=0.8, warm_up=warm_up, convex=convex)
    record = np.full(20, -1)
    for _ in range(batches):
        index, label = rng.permutation(20)[:6], rng.integers(0, 3, size=6)
        confidence = rng.uniform(0.5, 1.0, size=6)
        record[index] = np.where(confidence >= 0.8, label, record[index])
        part.update(torch.tensor(index), label=torch.tensor(label), confidence=torch.tensor(confidence))
    expected = reference.flexible_thresholds(record, 3, tau=0.8, warm_up=warm_up, convex=convex)
    np.testing.assert_allclose(numpy64(part()), expected, atol=1e-6)
    assert part.record.tolist() == record.tolist()


def test_a_slow_class_gets_a_lower_threshold() -> None:
    part = FlexibleThresholds(30, classes=3, threshold=0.95)
    assert part().tolist() == [0.0, 0.0, 0.0]
    # Half the samples are on record: twelve of class 0, three of class 1, none of class 2.
    label = torch.tensor([0] * 12 + [1] * 3)
    part.update(torch.arange(15), label=label, confidence=torch.ones(15))
    early = part()
    assert early[0] > early[1] > early[2] == 0
    part.update(torch.arange(15, 30), label=torch.zeros(15, dtype=torch.int64), confidence=torch.ones(15))
    late = part()
    assert float(late[0]) == pytest.approx(0.95)  # the fastest class is where FixMatch is
    assert late[1] < 0.1


def test_an_unsure_prediction_leaves_the_record_alone() -> None:
    part = FlexibleThresholds(4, classes=2, threshold=0.9)
    part.update(torch.tensor([2]), label=torch.tensor([1]), confidence=torch.tensor([0.95]))
    part.update(torch.tensor([2, 3]), label=torch.tensor([0, 0]), confidence=torch.tensor([0.5, 0.5]))
    assert part.record.tolist() == [-1, -1, 1, -1]
    assert part.counts.tolist() == [0, 1]


def test_a_freematch_step_is_the_papers_after_some_training() -> None:
    run = Run(build("freematch", threshold_momentum=0.7, lambda_f=0.3))
    past, seen = watch(run, 6)
    level, marginal, histogram = reference.freematch_state([e.probs for e in past], CLASSES, 0.7)
    thresholds = marginal / marginal.max() * level
    reliable = seen.probs.max(axis=1) >= thresholds[seen.probs.argmax(axis=1)]
    assert 0 < reliable.mean() < 1
    strong = np.exp(seen.strong_logits[0])
    strong = strong / strong.sum(axis=1, keepdims=True)
    loss_u = unlabelled(hard(seen.probs), reliable.astype(np.float64), seen.strong_logits[0])
    loss_f = reference.freematch_fairness(strong, reliable, marginal, histogram)
    step = run.look()
    assert float(step.terms["loss_f"]) == pytest.approx(loss_f, abs=1e-5)
    assert loss_of(step) == pytest.approx(supervised(seen) + loss_u + 0.3 * loss_f, abs=1e-5)


@quick
@given(seed=seeds, batches=st.integers(0, 5))
def test_self_adaptive_thresholds_match_reference(seed: int, batches: int) -> None:
    rng = np.random.default_rng(seed)
    rows = [distributions(rng, 6, 3) for _ in range(batches)]
    part = SelfAdaptiveThresholds(3, momentum=0.9)
    for batch in rows:
        part.update(floats(batch))
    level, marginal, histogram = reference.freematch_state(rows, 3, 0.9)
    assert float(part.level) == pytest.approx(level, abs=1e-6)
    np.testing.assert_allclose(numpy64(part.histogram), histogram, atol=1e-6)
    np.testing.assert_allclose(numpy64(part()), marginal / marginal.max() * level, atol=1e-6)


def test_the_global_threshold_follows_the_mean_confidence() -> None:
    part = SelfAdaptiveThresholds(4, momentum=0.9)
    assert float(part.level) == 0.25
    balanced = torch.eye(4) * 0.6 + 0.1
    for _ in range(100):
        part.update(balanced)
    assert float(part.level) == pytest.approx(0.7, abs=1e-3)
    assert part().tolist() == pytest.approx([0.7] * 4, abs=1e-3)
    skewed = torch.tensor([[0.7, 0.1, 0.1, 0.1]] * 3 + [[0.1, 0.7, 0.1, 0.1]])
    for _ in range(100):
        part.update(skewed)
    assert float(part()[0]) == pytest.approx(0.7, abs=1e-3)
    assert part()[1] < 0.4


@quick
@given(seed=seeds, n=st.integers(1, 8), classes=st.integers(2, 5), retained=st.floats(0, 1))
def test_fairness_matches_reference(seed: int, n: int, classes: int, retained: float) -> None:
    rng = np.random.default_rng(seed)
    strong, reliable = distributions(rng, n, classes), rng.random(n) < retained
    marginal, histogram = (0.9 * distributions(rng, 2, classes) + 0.1 / classes)[:2]
    got = fairness_loss(
        floats(strong, torch.float64),
        torch.tensor(reliable),
        marginal=floats(marginal, torch.float64),
        histogram=floats(histogram, torch.float64),
    )
    expected = reference.freematch_fairness(strong, reliable, marginal, histogram)
    assert float(got) == pytest.approx(expected, abs=1e-8)


def test_fairness_without_reliable_rows_is_zero_and_has_a_gradient() -> None:
    logits = torch.zeros(3, 4, requires_grad=True)
    uniform = torch.full((4,), 0.25)
    loss = fairness_loss(logits.softmax(-1), torch.zeros(3, dtype=torch.bool), marginal=uniform, histogram=uniform)
    torch.autograd.backward(loss)
    assert float(loss.detach()) == 0.0
    assert logits.grad is not None
    assert torch.equal(logits.grad, torch.zeros(3, 4))
