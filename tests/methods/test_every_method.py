"""What holds of every method with one network and no crops: steps read, commits write, all is in the state_dict."""

import contextlib
import copy
from collections import deque
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from protocon.methods import METHODS as ALL
from protocon.methods import Method
from protocon.types import Batch, Outputs
from tests.core.inputs import restored, same_state, snapshot
from tests.methods.harness import (
    CLASSES,
    DIM,
    ROWS,
    STEPS_PER_EPOCH,
    Run,
    TinyNetwork,
    build,
    is_plain,
    loss_of,
    make_batch,
    progress,
)

METHODS = {name: method for name, method in ALL.items() if is_plain(method)}
UNLABELLED = [name for name, method in METHODS.items() if method.uses_unlabelled]


def lenient(name: str, **settings: Any) -> Method:
    """A method that finds enough reliable pseudo-labels in so small a problem."""
    low = {"threshold": 0.5} if "threshold" in METHODS[name].Config.model_fields else {}
    return build(name, **low, **settings)


@pytest.mark.parametrize("teacher", ["student", "eman"])
@pytest.mark.parametrize("name", METHODS)
def test_a_step_changes_nothing(name: str, teacher: str) -> None:
    run = Run(build(name, teacher=teacher), teacher=TinyNetwork(2) if teacher == "eman" else None)
    for _ in range(7):
        before = snapshot(run.method)
        first, second = run.look(), run.look()
        assert same_state(before, snapshot(run.method))
        assert loss_of(first) == pytest.approx(loss_of(second), abs=0, nan_ok=True)
        run.advance()


@pytest.mark.parametrize("interruption", [3, 2 * STEPS_PER_EPOCH + 1])
@pytest.mark.parametrize("name", METHODS)
def test_a_restored_method_goes_on_bit_for_bit(name: str, interruption: int) -> None:
    run = Run(build(name))
    run.advance(interruption)
    again = Run(restored(run.method, build(name)), copy.deepcopy(run.network), step=interruption)
    for _ in range(STEPS_PER_EPOCH + 1):
        step, other = run.advance()[0], again.advance()[0]
        assert loss_of(step) == pytest.approx(loss_of(other), abs=0, rel=0, nan_ok=True)
        assert all(torch.equal(step.rows[key], other.rows[key]) for key in step.rows)
        assert same_state(snapshot(run.method), snapshot(again.method))
    assert same_state(snapshot(run.network), snapshot(again.network))


@pytest.mark.parametrize("name", METHODS)
def test_state_is_persistent_buffers_only(name: str) -> None:
    run = Run(build(name))
    fresh = snapshot(run.method)
    run.advance(2 * STEPS_PER_EPOCH)
    assert not list(run.method.parameters())
    assert set(dict(run.method.named_buffers())) == set(run.method.state_dict()) == set(fresh)
    written_before = METHODS[name].uses_samples
    assert same_state(fresh, snapshot(run.method)) == (not fresh or written_before)  # what is kept is kept for a reason
    for part in run.method.modules():
        loose = [k for k, v in vars(part).items() if isinstance(v, Tensor | list | deque | np.ndarray)]
        assert not loose
    kept = run.method.state_dict(keep_vars=True).values()
    assert not any(value.requires_grad for value in kept)  # banks must not hold a step's graph


@pytest.mark.parametrize("name", UNLABELLED)
def test_rows_and_terms_are_what_the_log_needs(name: str) -> None:
    run = Run(lenient(name))
    step = run.advance(STEPS_PER_EPOCH + 2)[-1]
    assert {"loss_x", "loss_u", "retention"} <= step.terms.keys()
    assert all(term.ndim == 0 and not term.requires_grad for term in step.terms.values())
    assert torch.equal(step.rows["index"], make_batch(run.step - 1).index)
    for kind in ("classifier", "refined"):
        assert step.rows[kind].shape == (ROWS,)
        assert step.rows[kind].dtype == torch.int64
    assert not any(row.requires_grad for row in step.rows.values())
    opinions = run.method.opinions(torch.full((3, CLASSES), 1 / CLASSES), torch.arange(3))
    assert all(torch.allclose(probs.sum(-1), torch.ones(3)) for probs in opinions.values())


def oracle(x: Tensor) -> Outputs:
    """A teacher that knows one answer."""
    sure = nn.functional.one_hot(torch.full((len(x),), 3), CLASSES) * 30.0
    return Outputs(sure, nn.functional.normalize(torch.ones(len(x), DIM), dim=-1))


@pytest.mark.parametrize("name", UNLABELLED)
def test_pseudo_labels_are_the_teachers(name: str) -> None:
    taught = Run(build(name, teacher="eman"), teacher=oracle).advance(STEPS_PER_EPOCH + 1)[-1]
    assert taught.rows["classifier"].tolist() == [3] * ROWS
    own = Run(build(name)).advance(STEPS_PER_EPOCH + 1)[-1]
    assert own.rows["classifier"].tolist() != [3] * ROWS


@pytest.mark.parametrize("joint", [True, False])
@pytest.mark.parametrize("name", [name for name in UNLABELLED if METHODS[name].strong_views])
def test_under_eman_only_the_teacher_looks_at_weak_views(name: str, joint: bool) -> None:
    run = Run(lenient(name, teacher="eman", joint_batchnorm=joint), teacher=oracle)
    run.advance(STEPS_PER_EPOCH + 1)
    batch = make_batch(run.step, strong_views=run.method.strong_views)
    steps = [
        run.method.step(run.network, oracle, replace(batch, weak=weak), progress(run.step))
        for weak in (batch.weak, 5.0 * batch.weak.flip(0))  # which the teacher, knowing one answer, does not notice
    ]
    assert loss_of(steps[0]) == pytest.approx(loss_of(steps[1]), abs=0)
    assert float(steps[0].terms["loss_u"]) > 0


@pytest.mark.parametrize("name", ["comatch", "simmatch", "protocon"])
def test_banks_hold_the_teachers_embeddings_of_labelled_images(name: str) -> None:
    step = Run(build(name, teacher="eman"), teacher=oracle).look()
    assert torch.allclose(step.rows["labelled_embeddings"], torch.full((1, DIM), DIM**-0.5))


@pytest.mark.parametrize("joint", [True, False])
@pytest.mark.parametrize("name", [name for name in UNLABELLED if METHODS[name].strong_views])
def test_no_gradient_flows_through_the_weak_view(name: str, joint: bool) -> None:
    run = Run(lenient(name, joint_batchnorm=joint))
    run.advance(3 * STEPS_PER_EPOCH)
    batch = make_batch(run.step, strong_views=run.method.strong_views)
    batch.weak.requires_grad_()
    for view in batch.strong:
        view.requires_grad_()
    loss = run.method.step(run.network, run.network, batch, progress(run.step)).loss
    assert loss is not None
    torch.autograd.backward(loss)
    assert batch.weak.grad is None or not batch.weak.grad.any()
    for view in batch.strong:
        assert view.grad is not None
        assert view.grad.any()


@pytest.mark.parametrize("name", METHODS)
def test_rows_of_a_short_slice_count_by_their_share(name: str) -> None:
    run = Run(lenient(name))
    run.advance(3 * STEPS_PER_EPOCH)
    whole, half, labelled = run.look().terms, run.look(share=0.5).terms, run.look(labelled_share=0.5).terms
    over_the_batch = {"loss_ctr", "loss_f"}  # made from the rows of all processes
    for term in whole.keys() - {"loss_p"}:  # of both kinds of rows
        share = 1.0 if term in over_the_batch | {"loss_x"} else 0.5
        assert float(half[term]) == pytest.approx(float(whole[term]) * share, abs=1e-6)
        share = 0.5 if term == "loss_x" else 1.0
        assert float(labelled[term]) == pytest.approx(float(whole[term]) * share, abs=1e-6)
    assert all(float(whole[term]) > 0 for term in whole.keys() & {"loss_x", "loss_u", "retention"})
    if "loss_p" in whole:
        assert float(half["loss_p"] + labelled["loss_p"]) == pytest.approx(1.5 * float(whole["loss_p"]), rel=1e-5)


@pytest.mark.parametrize("name", METHODS)
def test_a_step_never_waits_for_the_device(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Tensors on the meta device have no numbers: reading one on the host would raise. Nor has it autocast.
    monkeypatch.setattr(torch, "autocast", lambda *_, **__: contextlib.nullcontext())
    run = Run(build(name), TinyNetwork().to("meta"))
    run.method.to("meta")
    batch = make_batch(STEPS_PER_EPOCH, strong_views=run.method.strong_views)
    there = Batch(
        labelled=batch.labelled.to("meta"),
        targets=batch.targets.to("meta"),
        labelled_index=batch.labelled_index.to("meta"),
        weak=batch.weak.to("meta"),
        strong=tuple(view.to("meta") for view in batch.strong),
        index=batch.index.to("meta"),
    )
    step = run.method.step(run.network, run.network, there, progress(STEPS_PER_EPOCH))
    assert step.loss is not None
    assert step.loss.is_meta
