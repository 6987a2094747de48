"""The sample bank: four numbers a sample, and what goes in comes out."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from protocon.core.bank import SampleBank
from tests.core.inputs import quick, seeds


def test_a_sample_costs_four_numbers_and_at_most_ten_bytes() -> None:
    # ImageNet: 1000 classes, K = 4800; the paper counts 4N numbers.
    bank = SampleBank(300, classes=1000, clusters=4800)
    buffers = list(bank.buffers())
    assert sum(b.numel() for b in buffers) == 4 * 300
    assert sum(b.numel() * b.element_size() for b in buffers) <= 10 * 300
    assert set(bank.state_dict()) == {"label", "reliable", "assignment", "similarity"}


def test_a_second_head_adds_an_assignment_and_a_similarity() -> None:
    bank = SampleBank(50, classes=10, clusters=5, heads=2)
    assert sum(b.numel() for b in bank.buffers()) == 6 * 50


def test_a_new_bank_has_seen_nothing() -> None:
    bank = SampleBank(4, classes=3, clusters=2)
    assert (bank.label == -1).all()
    assert not bank.reliable.any()


@quick
@given(
    seed=seeds,
    size=st.integers(1, 30),
    classes=st.sampled_from([1, 10, 127, 128, 129, 32767, 32768, 40000]),
    clusters=st.sampled_from([1, 255, 256, 32767, 32768, 32769, 70000]),
    heads=st.integers(1, 3),
)
def test_what_is_written_is_read_and_nothing_else_changes(
    seed: int, size: int, classes: int, clusters: int, heads: int
) -> None:
    rng = np.random.default_rng(seed)
    bank = SampleBank(size, classes=classes, clusters=clusters, heads=heads)
    want_label, want_reliable = np.full(size, -1), np.zeros(size, dtype=bool)
    want_assignment, want_similarity = bank.assignment.numpy().copy(), bank.similarity.numpy().copy()
    for _ in range(2):
        index = rng.permutation(size)[: rng.integers(0, size + 1)]
        # The largest ids are the ones that a type too narrow would fold.
        label = rng.choice([0, classes - 1], size=len(index))
        assignment = rng.choice([0, clusters // 2, clusters - 1], size=(len(index), heads))
        reliable, similarity = rng.random(len(index)) < 0.5, rng.uniform(-1, 1, size=(len(index), heads))
        bank.write(
            torch.as_tensor(index),
            label=torch.as_tensor(label),
            reliable=torch.as_tensor(reliable),
            assignment=torch.as_tensor(assignment),
            similarity=torch.as_tensor(similarity, dtype=torch.float32),
        )
        want_label[index], want_reliable[index] = label, reliable
        want_assignment = want_assignment.astype(np.int64)
        want_assignment[index] = assignment
        want_similarity[index] = similarity
        np.testing.assert_array_equal(bank.label.numpy(), want_label)
        np.testing.assert_array_equal(bank.reliable.numpy(), want_reliable)
        np.testing.assert_array_equal(bank.assignment.numpy(), want_assignment)
        # Half precision: 11 significant bits.
        np.testing.assert_allclose(bank.similarity.float().numpy(), want_similarity, rtol=2**-11, atol=1e-6)


@pytest.mark.parametrize("heads", [1, 2])
def test_a_row_is_rewritten_not_accumulated(heads: int) -> None:
    bank = SampleBank(3, classes=4, clusters=5, heads=heads)
    for number in (3, 1):
        bank.write(
            torch.tensor([1]),
            label=torch.tensor([number]),
            reliable=torch.tensor([number == 3]),
            assignment=torch.full((1, heads), number),
            similarity=torch.full((1, heads), number / 4),
        )
    assert bank.label.tolist() == [-1, 1, -1]
    assert not bank.reliable.any()
    assert bank.assignment[1].tolist() == [1] * heads
    assert bank.similarity[1].tolist() == [0.25] * heads


@pytest.mark.parametrize("count", [1, 128, 129, 256, 257, 32768, 32769, 65537])
def test_the_largest_class_and_cluster_fit(count: int) -> None:
    bank = SampleBank(1, classes=count, clusters=count)
    bank.write(
        torch.tensor([0]),
        label=torch.tensor([count - 1]),
        reliable=torch.tensor([True]),
        assignment=torch.tensor([[count - 1]]),
        similarity=torch.ones(1, 1),
    )
    assert bank.label.tolist() == [count - 1]
    assert bank.assignment.tolist() == [[count - 1]]
