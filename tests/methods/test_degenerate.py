"""With what makes it special switched off, a method is the one it was built on, step for step."""

from typing import Any

import pytest
import torch

from tests.methods.harness import Run, TinyNetwork, build, loss_of

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


@pytest.mark.parametrize("batchnorm", [True, False])
def test_debiaspl_without_strength_is_fixmatch(batchnorm: bool) -> None:
    without, fixmatch = build("debiaspl", debias=0.0, threshold=0.8), build("fixmatch", threshold=0.8)
    runs = [Run(method, TinyNetwork(batchnorm=batchnorm)) for method in (without, fixmatch)]
    assert_same(runs[0], runs[1], tolerance=0.0)


@pytest.mark.parametrize("joint", [True, False])
def test_simmatch_without_smoothing_is_fixmatch_with_alignment_in_batch_statistics_too(joint: bool) -> None:
    # Not so CoMatch: its second strong view is in the batch that the statistics are of.
    common: dict[str, Any] = {"threshold": 0.8, "soft_labels": True, "joint_batchnorm": joint}
    simmatch = Run(build("simmatch", alpha=1.0, lambda_in=0.0, **common), TinyNetwork(batchnorm=True))
    assert_same(simmatch, Run(build("fixmatch-da", **common), TinyNetwork(batchnorm=True)), tolerance=1e-6)


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
    ("name", "settings", "plain", "its"),
    [
        ("comatch", {"alpha": 0.5, "lambda_ctr": 0.0}, "fixmatch-da", {"soft_labels": True}),
        ("comatch", {"alpha": 1.0, "lambda_ctr": 1.0}, "fixmatch-da", {"soft_labels": True}),
        ("simmatch", {"alpha": 0.5, "lambda_in": 0.0}, "fixmatch-da", {"soft_labels": True}),
        ("simmatch", {"alpha": 1.0, "lambda_in": 1.0}, "fixmatch-da", {"soft_labels": True}),
        ("fixmatch-da", {}, "fixmatch", {}),
        ("fixmatch-da", {"alignment": "dual"}, "fixmatch-da", {}),
        ("debiaspl", {"debias": 0.5, "debias_momentum": 0.9}, "fixmatch", {}),
    ],
)
def test_each_part_alone_makes_a_difference(
    name: str, settings: dict[str, Any], plain: str, its: dict[str, Any]
) -> None:
    run, without = Run(build(name, threshold=0.8, **settings)), Run(build(plain, threshold=0.8, **its))
    run.advance(STEPS)
    without.advance(STEPS)
    moved = [
        float((own - other).abs().max().detach())
        for own, other in zip(run.network.parameters(), without.network.parameters(), strict=True)
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
