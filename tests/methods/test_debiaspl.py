"""DebiasPL against its equations: an over-predicted class is held back."""

import numpy as np
import pytest
import torch
from hypothesis import given

from protocon.core.debias import LogitDebias
from tests.core.inputs import distributions, floats, numpy64, quick, seeds
from tests.methods import reference_methods as reference
from tests.methods.harness import CLASSES, Run, build, loss_of
from tests.methods.watching import supervised, watch


def test_a_step_is_the_papers_after_some_training() -> None:
    run = Run(build("debiaspl", threshold=0.6, debias=0.8, debias_momentum=0.8))
    past, seen = watch(run, 6)
    mean = reference.running_mean(np.full(CLASSES, 1 / CLASSES), [e.probs for e in past], 0.8)
    pseudo = np.array([reference.debiased_label(row, mean, 0.8) for row in seen.logits])
    labels, reliable = pseudo.argmax(axis=1), pseudo.max(axis=1) >= 0.6
    assert 0 < reliable.mean() < 1
    loss_u = float(
        np.mean(
            [
                reference.marginal_loss(row, int(label), mean, 0.8) * counts
                for row, label, counts in zip(seen.strong_logits[0], labels, reliable, strict=True)
            ]
        )
    )
    step = run.look()
    assert float(step.terms["loss_u"]) == pytest.approx(loss_u, abs=1e-5)
    assert loss_of(step) == pytest.approx(supervised(seen) + loss_u, abs=1e-5)
    assert step.rows["refined"].tolist() == labels.tolist()
    assert step.rows["classifier"].tolist() == seen.logits.argmax(axis=1).tolist()


@quick
@given(seed=seeds)
def test_running_mean_is_of_each_class(seed: int) -> None:
    rng = np.random.default_rng(seed)
    batches = [distributions(rng, 5, 3) for _ in range(4)]
    debias = LogitDebias(3, strength=0.5, momentum=0.9)
    for batch in batches:
        debias.update(floats(batch))
    expected = reference.running_mean(np.full(3, 1 / 3), batches, 0.9)
    np.testing.assert_allclose(numpy64(debias.mean), expected, atol=1e-6)


def test_an_over_predicted_class_loses_a_tie_and_needs_a_smaller_margin() -> None:
    debias = LogitDebias(3, strength=0.5, momentum=0.9)
    for _ in range(20):
        debias.update(torch.tensor([[0.9, 0.05, 0.05]]))
    tie = torch.tensor([[1.0, 1.0, -5.0]])
    assert debias(tie).softmax(-1)[0, 0] < 0.3
    assert debias(tie).argmax() == 1
    with_margin = debias.margin(tie).log_softmax(-1)
    assert with_margin[0, 0] > with_margin[0, 1]  # the rare class still has more to learn


def test_debiased_opinions_are_those_of_training() -> None:
    run = Run(build("debiaspl", debias_momentum=0.5))
    run.advance(3)
    step = run.look()
    refined = run.method.opinions(step.rows["probs"], step.rows["index"])["refined"]
    assert refined.argmax(-1).tolist() == step.rows["refined"].tolist()
    assert not torch.allclose(refined, step.rows["probs"], atol=1e-2)
