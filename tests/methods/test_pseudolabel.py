"""Pseudo-Label: a confident prediction trains its own view, more and more."""

import pytest
import torch

from tests.methods.harness import TOTAL_STEPS, Run, build, loss_of, make_batch, progress
from tests.methods.watching import hard, see, supervised, unlabelled


@pytest.mark.parametrize(("step", "weight"), [(0, 0.0), (TOTAL_STEPS // 5, 0.5), (TOTAL_STEPS // 2, 1.0)])
def test_a_step_is_the_papers_and_its_weight_grows(step: int, weight: float) -> None:
    run = Run(build("pseudo-label", threshold=0.7, ramp=0.4, lambda_u=3.0), step=step)
    seen = see(run)
    reliable = seen.probs.max(axis=1) >= 0.7
    assert 0 < reliable.mean() < 1
    loss_u = unlabelled(hard(seen.probs), reliable.astype(float), seen.logits)
    result = run.look()
    assert float(result.terms["loss_u"]) == pytest.approx(loss_u, abs=1e-5)
    assert loss_of(result) == pytest.approx(supervised(seen) + 3.0 * weight * loss_u, abs=1e-5)


def test_no_ramp_is_full_weight_from_the_start() -> None:
    run = Run(build("pseudo-label", threshold=0.5, ramp=0.0))
    result = run.look()
    assert loss_of(result) == pytest.approx(float(result.terms["loss_x"] + result.terms["loss_u"]), abs=1e-6)


def test_the_weak_view_itself_is_trained() -> None:
    run = Run(build("pseudo-label", threshold=0.5, ramp=0.0))
    batch = make_batch(0, strong_views=0)
    assert batch.strong == ()
    weak = batch.weak.requires_grad_()
    loss = run.method.step(run.network, run.network, batch, progress(0)).loss
    assert loss is not None
    torch.autograd.backward(loss)
    assert weak.grad is not None
    assert torch.count_nonzero(weak.grad) > 0
