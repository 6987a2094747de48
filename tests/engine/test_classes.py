"""Accuracy and purity class by class, against counts made by hand."""

import numpy as np
import pytest
import torch

from protocon.engine.loop.class_stats import class_row, cluster_facts

NAMES = ("ant", "bee", "cow")
TRUTH = np.array([0, 0, 0, 1, 1, -1, 0])
HELD = {
    "label": torch.tensor([0, 0, 1, 1, 0, 2, 0], dtype=torch.int16),
    # cluster 0: ant ant bee (and one unknown); cluster 1: ant bee → the first of two equals; cluster 2: ant
    "assignment": torch.tensor([[0], [0], [1], [0], [1], [0], [2]], dtype=torch.int16),
}


def test_accuracy_and_purity_of_each_class() -> None:
    row = class_row(HELD, TRUTH, NAMES)
    assert row is not None
    assert row["pseudo_accuracy"] == {"ant": 0.75, "bee": 0.5}  # no image is known to be a cow
    # ant is the most frequent in all three clusters: (2/3 + 1/2 + 1) / 3
    assert row["purity"] == {"ant": pytest.approx((2 / 3 + 1 / 2 + 1) / 3, abs=1e-6)}
    assert row["mean_purity"] == pytest.approx((2 + 1 + 1) / 6, abs=1e-6)


def test_every_head_counts_its_own_clusters() -> None:
    two = {"assignment": torch.tensor([[0, 1], [0, 1], [1, 1], [1, 0], [1, 0], [0, 0], [0, 1]])}
    row = class_row(two, TRUTH, NAMES)
    assert row is not None
    # head 1: {ant ant ant}, {ant bee bee}; head 2: {ant ant ant ant}, {bee bee}
    assert row["purity"] == {"ant": 1.0, "bee": pytest.approx((2 / 3 + 1) / 2, abs=1e-6)}
    assert "pseudo_accuracy" not in row


def test_nothing_is_said_without_truth_or_without_a_bank() -> None:
    assert class_row(HELD, np.full(7, -1), NAMES) is None
    assert class_row({}, TRUTH, NAMES) is None


def test_samples_that_were_not_seen_yet_are_left_out() -> None:
    held = {"assignment": torch.tensor([[-1], [0], [-1], [0], [-1], [-1], [-1]])}
    row = class_row(held, TRUTH, NAMES)
    assert row is not None
    assert row["purity"] == {"ant": 0.5}
    assert row["mean_purity"] == 0.5


def test_facts_of_the_clusters() -> None:
    table = torch.tensor([[[0.7, 0.2, 0.1], [0.1, 0.1, 0.8], [1 / 3, 1 / 3, 1 / 3], [0.0, 1.0, 0.0]]])
    facts = cluster_facts(HELD | {"cluster_table": table}, NAMES)
    assert facts is not None
    (head,) = facts["heads"]
    assert head["members"] == [4, 2, 1, 0]
    assert head["label"] == ["ant", "cow", "ant", "bee"]
    assert head["confidence"] == pytest.approx([0.7, 0.8, 1 / 3, 1.0], abs=1e-6)
    assert cluster_facts({}, NAMES) is None
