"""Supervised learning, FixMatch and FixMatch with alignment against their equations."""

from typing import Any

import numpy as np
import pytest
import torch

from tests.methods.harness import CLASSES, LABELLED, Run, build, loss_of
from tests.methods.reference_methods import running_mean
from tests.methods.watching import aligned, hard, supervised, unlabelled, watch
from tests.reference import Floats, align, softmax

THRESHOLD = 0.7
PRIOR = np.array([0.4, 0.3, 0.2, 0.1])
UNIFORM = np.full(CLASSES, 1 / CLASSES)
STEPS = 10


def dual(probs: Floats, before: list[Floats], rate: float, prior: Floats) -> Floats:
    """A bias a class, moved after each batch by rate · (prior − what the biased predictions are on average)."""
    bias = np.zeros(CLASSES)

    def biased(batch: Floats) -> Floats:
        return np.array([softmax(np.log(row) + bias) for row in batch])

    for batch in before:
        bias = bias + rate * (prior - biased(batch).mean(axis=0))
    return biased(probs)


def expected_labels(probs: Floats, before: list[Floats], settings: dict[str, Any]) -> Floats:
    prior = PRIOR if "class_prior" in settings else None
    if settings.get("alignment") == "dual":
        return dual(probs, before, settings["alignment_rate"], UNIFORM if prior is None else prior)
    if "alignment_momentum" in settings:
        return align(probs, running_mean(UNIFORM, before, settings["alignment_momentum"]), prior)
    if prior is None:
        return aligned(probs, before, settings.get("alignment_window", 32))
    return align(probs, np.mean([batch.mean(axis=0) for batch in before], axis=0), prior)


def check_step(run: Run, pseudo: Floats, seen: Any, *, soft: bool) -> None:
    reliable = (pseudo.max(axis=1) >= THRESHOLD).astype(np.float64)
    assert 0 < reliable.mean() < 1
    loss_u = unlabelled(pseudo if soft else hard(pseudo), reliable, seen.strong_logits[0])
    step = run.look()
    assert float(step.terms["loss_x"]) == pytest.approx(supervised(seen), abs=1e-5)
    assert float(step.terms["loss_u"]) == pytest.approx(loss_u, abs=1e-5)
    assert float(step.terms["retention"]) == pytest.approx(reliable.mean())
    assert loss_of(step) == pytest.approx(supervised(seen) + 0.6 * loss_u, abs=1e-5)
    assert step.rows["refined"].tolist() == pseudo.argmax(axis=1).tolist()


def test_a_supervised_step_is_cross_entropy_of_the_labelled_alone() -> None:
    run = Run(build("supervised"))
    _, seen = watch(run, STEPS)
    assert loss_of(run.look()) == pytest.approx(supervised(seen), abs=1e-5)


@pytest.mark.parametrize("soft", [True, False])
def test_a_fixmatch_step_is_the_papers_after_some_training(soft: bool) -> None:
    run = Run(build("fixmatch", threshold=THRESHOLD, soft_labels=soft, lambda_u=0.6))
    _, seen = watch(run, STEPS)
    check_step(run, seen.probs, seen, soft=soft)


@pytest.mark.parametrize("soft", [True, False])
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"alignment_window": 3},
        {"alignment_momentum": 0.8},
        {"class_prior": tuple(PRIOR)},
        {"alignment": "dual", "alignment_rate": 0.5},
        {"alignment": "dual", "alignment_rate": 1.5, "class_prior": tuple(PRIOR)},
    ],
)
def test_a_step_with_alignment_is_the_papers_after_some_training(settings: dict[str, Any], soft: bool) -> None:
    run = Run(build("fixmatch-da", threshold=THRESHOLD, soft_labels=soft, lambda_u=0.6, **settings))
    past, seen = watch(run, STEPS)
    before = [earlier.probs for earlier in past]
    pseudo = expected_labels(seen.probs, before, settings)
    assert np.abs(pseudo - seen.probs).max() > 0.01  # it does something
    check_step(run, pseudo, seen, soft=soft)
    opinions = run.method.opinions(torch.from_numpy(seen.probs).float(), torch.arange(len(seen.probs)))
    np.testing.assert_allclose(opinions["refined"].numpy(), pseudo, atol=1e-5)
    np.testing.assert_allclose(opinions["classifier"].numpy(), seen.probs, atol=1e-6)


def test_the_prior_of_the_labels_is_each_classs_share_of_them() -> None:
    given = Run(build("fixmatch-da", class_prior=(0.25,) * CLASSES))
    counted = Run(build("fixmatch-da", class_prior="labels"))
    assert LABELLED % CLASSES == 0  # every class has as many
    for step, other in zip(given.advance(STEPS), counted.advance(STEPS), strict=True):
        assert loss_of(step) == pytest.approx(loss_of(other), abs=1e-6)
