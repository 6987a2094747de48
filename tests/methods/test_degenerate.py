"""With what makes it special switched off, a method is the one it was built on, step for step."""

from typing import Any

import pytest
import torch

from tests.methods.harness import Run, build, loss_of

STEPS = 12


def assert_same(left: Run, right: Run, *, tolerance: float) -> None:
    for step, other in zip(left.advance(STEPS), right.advance(STEPS), strict=True):
        assert loss_of(step) == pytest.approx(loss_of(other), abs=tolerance, rel=0)
        assert torch.equal(step.rows["refined"], other.rows["refined"])
    for own, its in zip(left.network.parameters(), right.network.parameters(), strict=True):
        assert torch.allclose(own, its, atol=tolerance, rtol=0)
    assert 0 < float(left.look().terms["retention"]) < 1  # there is something to learn from, and to leave


def test_alignment_to_a_uniform_running_mean_is_fixmatch(monkeypatch: pytest.MonkeyPatch) -> None:
    aligned = build("fixmatch-da", threshold=0.8)
    monkeypatch.setattr(aligned.alignment, "update", lambda probs: None)  # noqa: ARG005
    assert_same(Run(aligned), Run(build("fixmatch", threshold=0.8)), tolerance=1e-6)


def test_debiaspl_without_strength_is_fixmatch() -> None:
    without = Run(build("debiaspl", debias=0.0, threshold=0.8))
    assert_same(without, Run(build("fixmatch", threshold=0.8)), tolerance=0.0)


@pytest.mark.parametrize("soft", [True, False])
@pytest.mark.parametrize("joint", [True, False])
@pytest.mark.parametrize(("name", "off"), [("comatch", {"lambda_ctr": 0.0}), ("simmatch", {"lambda_in": 0.0})])
def test_without_smoothing_and_embedding_loss_it_is_fixmatch_with_alignment(
    name: str, off: dict[str, Any], soft: bool, joint: bool
) -> None:
    common: dict[str, Any] = {"threshold": 0.8, "soft_labels": soft, "joint_batchnorm": joint}
    method = Run(build(name, alpha=1.0, **off, **common))
    assert_same(method, Run(build("fixmatch-da", **common)), tolerance=1e-6)


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("comatch", {"alpha": 0.5, "lambda_ctr": 0.0}),
        ("comatch", {"alpha": 1.0, "lambda_ctr": 1.0}),
        ("simmatch", {"alpha": 0.5, "lambda_in": 0.0}),
        ("simmatch", {"alpha": 1.0, "lambda_in": 1.0}),
        ("debiaspl", {"debias": 0.5}),
    ],
)
def test_each_part_alone_makes_a_difference(name: str, settings: dict[str, float]) -> None:
    run, plain = Run(build(name, threshold=0.8, **settings)), Run(build("fixmatch-da", threshold=0.8))
    run.advance(STEPS)
    plain.advance(STEPS)
    moved = [
        float((own - its).abs().max().detach())
        for own, its in zip(run.network.parameters(), plain.network.parameters(), strict=True)
    ]
    assert max(moved) > 1e-3


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("fixmatch", {}),
        ("fixmatch-da", {}),
        ("debiaspl", {}),
        ("flexmatch", {}),
        ("freematch", {"lambda_f": 0.0}),
        ("softmatch", {}),
        ("pseudo-label", {}),
        ("comatch", {"lambda_ctr": 0.0}),
        ("simmatch", {"lambda_in": 0.0}),
    ],
)
def test_without_unlabelled_losses_it_is_supervised(name: str, settings: dict[str, float]) -> None:
    run, supervised = Run(build(name, lambda_u=0.0, **settings)), Run(build("supervised"))
    for step, other in zip(run.advance(STEPS), supervised.advance(STEPS), strict=True):
        assert loss_of(step) == pytest.approx(loss_of(other), abs=1e-6)
