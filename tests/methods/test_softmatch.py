"""SoftMatch against its equations: a weight in place of a threshold."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from protocon.core.weighting import ConfidenceGaussian
from tests.core.inputs import floats, numpy64, quick, seeds
from tests.methods import reference_methods as reference
from tests.methods.harness import CLASSES, Run, build, loss_of
from tests.methods.watching import hard, supervised, unlabelled, watch
from tests.reference import align


@pytest.mark.parametrize("uniform", [True, False])
def test_a_step_is_the_papers_after_some_training(uniform: bool) -> None:
    run = Run(build("softmatch", gaussian_momentum=0.5, uniform_alignment=uniform))
    past, seen = watch(run, 6)
    mean, variance = reference.softmatch_state([e.probs.max(axis=1) for e in past], CLASSES, 0.5)
    marginal = reference.running_mean(np.full(CLASSES, 1 / CLASSES), [e.probs for e in past], 0.5)
    judged = align(seen.probs, marginal, None) if uniform else seen.probs
    weights = np.array([reference.softmatch_weight(c, mean, variance, 2.0) for c in judged.max(axis=1)])
    assert weights.min() < 0.9
    assert weights.max() == 1.0
    loss_u = unlabelled(hard(seen.probs), weights, seen.strong_logits[0])  # the label is not aligned
    step = run.look()
    assert float(step.terms["retention"]) == pytest.approx(weights.mean(), abs=1e-5)
    assert loss_of(step) == pytest.approx(supervised(seen) + loss_u, abs=1e-5)


@quick
@given(seed=seeds, batches=st.integers(0, 5), width=st.sampled_from([1.0, 2.0, 3.0]))
def test_weights_match_reference(seed: int, batches: int, width: float) -> None:
    rng = np.random.default_rng(seed)
    rows = [rng.uniform(0.2, 1.0, size=7) for _ in range(batches)]
    part = ConfidenceGaussian(5, momentum=0.6, width=width)
    for batch in rows:
        part.update(floats(batch))
    mean, variance = reference.softmatch_state(rows, 5, 0.6)
    confidence = rng.uniform(0.2, 1.0, size=9)
    expected = [reference.softmatch_weight(c, mean, variance, width) for c in confidence]
    np.testing.assert_allclose(numpy64(part(floats(confidence))), expected, atol=1e-5)


def test_weight_is_one_from_the_mean_on_and_falls_below_it() -> None:
    part = ConfidenceGaussian(10, momentum=0.5, width=2.0)
    for _ in range(30):
        part.update(torch.tensor([0.6, 0.7, 0.8]))
    weights = part(torch.tensor([0.2, 0.5, 0.65, 0.71, 0.8, 1.0]))
    assert weights[3:].tolist() == [1.0, 1.0, 1.0]
    assert 0 < weights[0] < weights[1] < weights[2] < 1


def test_one_row_has_no_spread() -> None:
    part = ConfidenceGaussian(2, momentum=0.0, width=2.0)
    part.update(torch.tensor([0.75]))
    assert float(part.variance) == 0.0
    assert part(torch.tensor([0.7, 0.75, 0.8])).tolist() == [0.0, 1.0, 1.0]
