"""Eq. 1 against the reference."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from protocon.core.prototypes import ClassPrototypes
from tests import reference
from tests.core.inputs import floats, ints, numpy64, quick, seeds, unit_rows


@quick
@given(seed=seeds, classes=st.integers(1, 6), dim=st.integers(1, 5), rows=st.integers(1, 8))
def test_two_epochs_match_reference(seed: int, classes: int, dim: int, rows: int) -> None:
    rng = np.random.default_rng(seed)
    ours = ClassPrototypes(classes, dim)
    want = numpy64(ours.prototypes)
    for _ in range(2):
        embeddings, labels, members = [], [], []
        for _ in range(3):
            # Kept on one side of the origin: a mean near zero has no direction to compare.
            batch = unit_rows(rng, rows, dim) + 1.5
            batch = np.array([reference.unit(row) for row in batch])
            label = rng.integers(0, classes, size=rows)
            mask = rng.random(rows) < 0.6
            ours.add(floats(batch), ints(label))
            ours.add(floats(batch[::-1].copy()), ints(label), torch.as_tensor(mask))
            embeddings += [batch, batch[::-1]]
            labels += [label, label]
            members += [np.ones(rows, dtype=np.bool_), mask]
        np.testing.assert_allclose(numpy64(ours.prototypes), want, atol=1e-5)  # not before publish
        want = reference.prototypes(
            np.concatenate(embeddings), np.concatenate(labels), np.concatenate(members), previous=want
        )
        ours.publish()
        np.testing.assert_allclose(numpy64(ours.prototypes), want, atol=1e-5)


def test_worked_by_hand() -> None:
    ours = ClassPrototypes(2, 2)
    ours.add(torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]]), torch.tensor([0, 0, 1]))
    ours.publish()
    torch.testing.assert_close(ours.prototypes, torch.tensor([[0.5**0.5, 0.5**0.5], [0.6, 0.8]]))


def test_a_class_without_a_member_keeps_its_prototype() -> None:
    ours = ClassPrototypes(3, 2)
    ours.add(torch.tensor([[1.0, 0.0], [0.0, 1.0]]), torch.tensor([0, 1]))
    ours.publish()
    first = ours.prototypes.clone()
    # Class 0 has only a masked row, class 1 a new member, class 2 none.
    ours.add(torch.tensor([[0.0, -1.0], [-1.0, 0.0]]), torch.tensor([0, 1]), torch.tensor([False, True]))
    ours.publish()
    assert torch.equal(ours.prototypes[[0, 2]], first[[0, 2]])
    torch.testing.assert_close(ours.prototypes[1], torch.tensor([-1.0, 0.0]))


def test_publishing_an_epoch_without_members_changes_nothing() -> None:
    ours = ClassPrototypes(2, 2)
    ours.add(torch.tensor([[1.0, 0.0]]), torch.tensor([1]))
    ours.publish()
    first = ours.prototypes.clone()
    assert first.any()
    ours.publish()
    assert torch.equal(ours.prototypes, first)


def test_sums_start_anew_each_epoch() -> None:
    ours = ClassPrototypes(1, 2)
    for target in (torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 1.0]])):
        ours.add(target, torch.tensor([0]))
        ours.publish()
        torch.testing.assert_close(ours.prototypes, target)
        assert not ours.counts.any()
        assert not ours.sums.any()


def test_mixed_precision_around_it_does_not_coarsen_the_sums() -> None:
    embeddings, labels = floats(unit_rows(np.random.default_rng(0), 600, 16)), torch.arange(600) % 3
    outside, inside = ClassPrototypes(3, 16), ClassPrototypes(3, 16)
    outside.add(embeddings, labels)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        inside.add(embeddings, labels)
    assert outside.sums.any()
    assert torch.equal(inside.sums, outside.sums)
