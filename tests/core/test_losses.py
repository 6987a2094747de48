"""Eq. 2, 10, 11, 12 and NT-Xent against the reference; who gets gradient; what a mask does to the mean."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from protocon.core.losses import (
    consistency_loss,
    instance_discrimination_loss,
    prototypical_loss,
    supervised_loss,
    unlabelled_loss,
)
from tests import reference
from tests.core.inputs import (
    as_float32,
    distributions,
    floats,
    ints,
    numpy64,
    precisions,
    quick,
    seeds,
    temperatures,
    tolerance,
    unit_rows,
)

rows_ = st.integers(1, 7)
classes_ = st.integers(1, 6)
dims = st.integers(1, 6)


def close(got: Tensor, want: float, dtype: torch.dtype) -> None:
    assert got.shape == ()
    assert got.item() == pytest.approx(want, rel=10 * tolerance(dtype), abs=10 * tolerance(dtype))


@quick
@given(seed=seeds, rows=rows_, classes=classes_, dtype=precisions)
def test_supervised_loss_is_eq_11(seed: int, rows: int, classes: int, dtype: torch.dtype) -> None:
    rng = np.random.default_rng(seed)
    logits, targets = as_float32(4 * rng.normal(size=(rows, classes))), rng.integers(0, classes, size=rows)
    close(
        supervised_loss(floats(logits, dtype), ints(targets)),
        reference.supervised_loss(logits, targets),
        dtype,
    )


@quick
@given(seed=seeds, rows=rows_, classes=classes_, share=st.sampled_from([0.0, 0.5, 1.0]), dtype=precisions)
def test_unlabelled_loss_is_eq_10(seed: int, rows: int, classes: int, share: float, dtype: torch.dtype) -> None:
    rng = np.random.default_rng(seed)
    logits, targets = as_float32(4 * rng.normal(size=(rows, classes))), distributions(rng, rows, classes)
    reliable = rng.random(rows) < share
    got = unlabelled_loss(floats(logits, dtype), floats(targets, dtype), torch.as_tensor(reliable))
    close(got, reference.unlabelled_loss(logits, targets, reliable), dtype)


@quick
@given(
    seed=seeds,
    rows=rows_,
    classes=classes_,
    dim=dims,
    temperature=temperatures,
    soft=st.booleans(),
    masked=st.booleans(),
    dtype=precisions,
)
def test_prototypical_loss_is_eq_2(
    seed: int,
    rows: int,
    classes: int,
    dim: int,
    temperature: float,
    soft: bool,
    masked: bool,
    dtype: torch.dtype,
) -> None:
    rng = np.random.default_rng(seed)
    strong, protos = unit_rows(rng, rows, dim), unit_rows(rng, classes, dim)
    mask = rng.random(rows) < 0.5 if masked else None
    soft_labels, hard_labels = distributions(rng, rows, classes), rng.integers(0, classes, size=rows)
    got = prototypical_loss(
        floats(strong, dtype),
        floats(protos, dtype),
        floats(soft_labels, dtype) if soft else ints(hard_labels),
        temperature=temperature,
        mask=None if mask is None else torch.as_tensor(mask),
    )
    want = reference.prototypical_loss(
        strong, protos, soft_labels if soft else hard_labels, temperature=temperature, mask=mask
    )
    close(got, want, dtype)


@quick
@given(
    seed=seeds,
    rows=rows_,
    dim=dims,
    temperature=temperatures,
    sharpening=st.sampled_from([1.0, 5.0]),
    centred=st.booleans(),
    share=st.sampled_from([0.0, 0.5, 1.0]),
    dtype=precisions,
)
def test_consistency_loss_is_eq_12(
    seed: int,
    rows: int,
    dim: int,
    temperature: float,
    sharpening: float,
    centred: bool,
    share: float,
    dtype: torch.dtype,
) -> None:
    rng = np.random.default_rng(seed)
    weak, strong = unit_rows(rng, rows, dim), unit_rows(rng, rows, dim)
    reliable = rng.random(rows) < share
    center = as_float32(0.2 * rng.normal(size=dim)) if centred else None
    got = consistency_loss(
        floats(weak, dtype),
        floats(strong, dtype),
        torch.as_tensor(reliable),
        temperature=temperature,
        sharpening=sharpening,
        center=None if center is None else floats(center, dtype),
    )
    want = reference.consistency_loss(
        weak, strong, reliable, temperature=temperature, sharpening=sharpening, center=center
    )
    close(got, want, dtype)


@quick
@given(seed=seeds, rows=rows_, dim=dims, temperature=temperatures, dtype=precisions)
def test_instance_discrimination_is_nt_xent(
    seed: int, rows: int, dim: int, temperature: float, dtype: torch.dtype
) -> None:
    rng = np.random.default_rng(seed)
    first, second = unit_rows(rng, rows, dim), unit_rows(rng, rows, dim)
    got = instance_discrimination_loss(floats(first, dtype), floats(second, dtype), temperature=temperature)
    close(got, reference.instance_discrimination_loss(first, second, temperature=temperature), dtype)


def test_instance_discrimination_worked_by_hand() -> None:
    # Two images, both views equal, orthogonal to the other image: e / (e + 1 + 1) for each of the four.
    views = torch.eye(2)
    got = instance_discrimination_loss(views, views, temperature=1.0)
    torch.testing.assert_close(got, torch.log(1 + 2 * torch.exp(torch.tensor(-1.0))))


def recovered_target(weak: Tensor, strong: Tensor, *, temperature: float) -> Tensor:
    """Eq. 12's target, read off the gradient: ∂L/∂q^s = (SM(q^s/T) − target) / (T · rows)."""
    strong = strong.clone().requires_grad_()
    reliable = torch.zeros(len(weak), dtype=torch.bool)
    consistency_loss(weak, strong, reliable, temperature=temperature).backward()  # type: ignore[no-untyped-call]
    assert strong.grad is not None
    source = torch.softmax(strong.detach() / temperature, dim=1)
    return source - strong.grad * temperature * len(weak)


@quick
@given(seed=seeds, rows=rows_, dim=st.integers(2, 8), temperature=st.sampled_from([0.1, 0.5, 1.0]))
def test_consistency_target_is_sharper_than_its_source(seed: int, rows: int, dim: int, temperature: float) -> None:
    # The paper prints q^w / 5T, which would be flatter; its text asks for a sharper target: T / 5.
    same = unit_rows(np.random.default_rng(seed), rows, dim)
    target = numpy64(
        recovered_target(floats(same, torch.float64), floats(same, torch.float64), temperature=temperature)
    )
    for i in range(rows):
        source = reference.softmax(same[i] / temperature)
        np.testing.assert_allclose(target[i], reference.softmax(5 * same[i] / temperature), atol=1e-9)
        assert reference.entropy(np.clip(target[i], 0, 1)) < reference.entropy(source)


def test_consistency_sends_no_gradient_to_the_weak_view() -> None:
    rng = np.random.default_rng(0)
    weak = floats(unit_rows(rng, 4, 5)).requires_grad_()
    strong = floats(unit_rows(rng, 4, 5)).requires_grad_()
    reliable = torch.tensor([True, False, False, True])
    consistency_loss(weak, strong, reliable, temperature=0.1).backward()  # type: ignore[no-untyped-call]
    assert weak.grad is None or not weak.grad.any()
    assert strong.grad is not None
    assert torch.equal(strong.grad.abs().sum(dim=1) > 0, ~reliable)


def test_only_reliable_rows_and_only_the_strong_view_learn_from_pseudo_labels() -> None:
    rng = np.random.default_rng(1)
    logits = floats(rng.normal(size=(4, 3))).requires_grad_()
    reliable = torch.tensor([True, False, True, False])
    unlabelled_loss(logits, floats(distributions(rng, 4, 3)), reliable).backward()  # type: ignore[no-untyped-call]
    assert logits.grad is not None
    assert torch.equal(logits.grad.abs().sum(dim=1) > 0, reliable)


def masked_losses(rows: int, extra: int) -> dict[str, tuple[Tensor, Tensor]]:
    """Each maskable loss on `rows` active rows, and on the same with `extra` inactive ones."""
    rng = np.random.default_rng(2)
    total = rows + extra
    weak, strong = floats(unit_rows(rng, total, 5)), floats(unit_rows(rng, total, 5))
    logits, targets = floats(rng.normal(size=(total, 4))), floats(distributions(rng, total, 4))
    protos, labels = floats(unit_rows(rng, 4, 5)), ints(rng.integers(0, 4, size=total))
    active = torch.arange(total) < rows

    def each(n: int) -> list[Tensor]:
        return [
            unlabelled_loss(logits[:n], targets[:n], active[:n]),
            consistency_loss(weak[:n], strong[:n], ~active[:n], temperature=0.1),
            prototypical_loss(strong[:n], protos, labels[:n], temperature=0.1, mask=active[:n]),
            prototypical_loss(strong[:n], protos, targets[:n], temperature=0.1, mask=active[:n]),
        ]

    names = ["unlabelled", "consistency", "prototypical", "prototypical soft"]
    return dict(zip(names, zip(each(rows), each(total), strict=True), strict=True))


@pytest.mark.parametrize("name", ["unlabelled", "consistency", "prototypical", "prototypical soft"])
def test_a_mask_takes_rows_out_of_the_sum_but_not_out_of_the_mean(name: str) -> None:
    alone, diluted = masked_losses(6, 2)[name]
    assert alone > 0.1
    torch.testing.assert_close(diluted, alone * 6 / 8)


def test_a_batch_without_active_rows_costs_nothing() -> None:
    rng = np.random.default_rng(3)
    strong = floats(unit_rows(rng, 3, 5)).requires_grad_()
    none, every = torch.zeros(3, dtype=torch.bool), torch.ones(3, dtype=torch.bool)
    logits = strong[:, :4]
    losses = [
        unlabelled_loss(logits, floats(distributions(rng, 3, 4)), none),
        consistency_loss(strong.detach(), strong, every, temperature=0.1),
        prototypical_loss(strong, floats(unit_rows(rng, 4, 5)), torch.tensor([0, 1, 2]), temperature=0.1, mask=none),
    ]
    torch.stack(losses).sum().backward()  # type: ignore[no-untyped-call]
    assert [loss.item() for loss in losses] == [0.0, 0.0, 0.0]
    assert strong.grad is not None
    assert not strong.grad.any()


def test_extreme_scores_stay_finite() -> None:
    logits = torch.tensor([[1e4, -1e4, 0.0]], requires_grad=True)
    q = torch.tensor([[1.0, 0.0, 0.0]], requires_grad=True)
    everything, nothing = torch.ones(1, dtype=torch.bool), torch.zeros(1, dtype=torch.bool)
    losses = [
        supervised_loss(logits, torch.tensor([1])),
        unlabelled_loss(logits, torch.tensor([[0.0, 1.0, 0.0]]), everything),
        consistency_loss(-q.detach(), q, nothing, temperature=0.001),
        prototypical_loss(q, -torch.eye(3), torch.tensor([0]), temperature=0.001),
        instance_discrimination_loss(q, -q, temperature=0.001),
    ]
    torch.stack(losses).sum().backward()  # type: ignore[no-untyped-call]
    assert all(bool(torch.isfinite(loss)) for loss in losses)
    assert losses[0].item() == pytest.approx(2e4)
    assert logits.grad is not None
    assert q.grad is not None
    assert torch.isfinite(logits.grad).all()
    assert torch.isfinite(q.grad).all()


def test_gradient_descent_on_each_loss_reaches_what_it_asks_for() -> None:
    rng = np.random.default_rng(4)
    protos = torch.eye(3)
    labels = torch.tensor([0, 1, 2, 1])
    raw = floats(rng.normal(size=(4, 3))).requires_grad_()
    optimiser = torch.optim.SGD([raw], lr=0.5)
    for _ in range(60):
        optimiser.zero_grad()
        unit = torch.nn.functional.normalize(raw, dim=1)
        prototypical_loss(unit, protos, labels, temperature=0.5).backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    assert torch.equal((raw @ protos.T).argmax(dim=1), labels)
