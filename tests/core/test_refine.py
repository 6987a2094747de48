"""Eq. 8 and 9 against the reference, and what a subset of the members means."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from protocon.core.refine import cluster_labels, refine
from tests import reference
from tests.core.inputs import distributions, floats, ints, numpy64, precisions, quick, seeds, tolerance


def members(
    seed: int, samples: int, clusters: int, classes: int
) -> tuple[reference.Ints, reference.Ints, reference.Floats]:
    """Random bank: some samples unseen, some similarities negative, some clusters (nearly) empty."""
    rng = np.random.default_rng(seed)
    label = rng.integers(-1, classes, size=samples)
    assignment = rng.choice(clusters, size=samples, p=rng.dirichlet(np.full(clusters, 0.5)))
    scores = rng.uniform(-0.5, 1.0, size=samples).astype(np.float16).astype(np.float64)
    return label, assignment.astype(np.int64), scores


@quick
@given(seed=seeds, samples=st.integers(0, 60), clusters=st.integers(1, 8), classes=st.integers(1, 6))
def test_cluster_labels_match_reference(seed: int, samples: int, clusters: int, classes: int) -> None:
    label, assignment, scores = members(seed, samples, clusters, classes)
    want = reference.cluster_labels(label, assignment, scores, clusters=clusters, classes=classes)
    got = cluster_labels(ints(label), ints(assignment), floats(scores), clusters=clusters, classes=classes)
    assert got.dtype == torch.float32
    np.testing.assert_allclose(numpy64(got), want, atol=1e-5)
    torch.testing.assert_close(got.sum(dim=1), torch.ones(clusters))
    assert (got >= 0).all()


@quick
@given(seed=seeds, samples=st.integers(1, 60), clusters=st.integers(1, 8), classes=st.integers(1, 6))
def test_the_order_of_samples_does_not_matter(seed: int, samples: int, clusters: int, classes: int) -> None:
    label, assignment, scores = members(seed, samples, clusters, classes)
    order = np.random.default_rng(seed).permutation(samples)
    plain, shuffled = (
        cluster_labels(ints(label[o]), ints(assignment[o]), floats(scores[o]), clusters=clusters, classes=classes)
        for o in (np.arange(samples), order)
    )
    torch.testing.assert_close(plain, shuffled)


def test_cluster_labels_worked_by_hand() -> None:
    got = cluster_labels(
        torch.tensor([0, 1, 1, -1, 2, 0]),
        torch.tensor([0, 0, 0, 0, 1, 2]),
        torch.tensor([0.6, 0.2, 0.4, 0.9, -0.3, 0.0]),
        clusters=4,
        classes=3,
    )
    third = [1 / 3, 1 / 3, 1 / 3]
    # Cluster 1 has only a negative score, 2 only a zero, 3 no member at all: none of them knows anything.
    torch.testing.assert_close(got, torch.tensor([[0.5, 0.5, 0.0], third, third, third]))


def test_narrow_bank_types_are_accepted() -> None:
    label, assignment, scores = members(5, 80, 4, 3)
    wide = cluster_labels(ints(label), ints(assignment), floats(scores), clusters=4, classes=3)
    narrow = cluster_labels(
        ints(label).to(torch.int16),
        ints(assignment).to(torch.int16),
        floats(scores).to(torch.float16),
        clusters=4,
        classes=3,
    )
    torch.testing.assert_close(narrow, wide, atol=1e-6, rtol=0)
    assert wide.std() > 0.05


def test_large_clusters_lose_no_member_to_half_precision() -> None:
    # A float16 sum stops growing at 2048: the second class would seem to have no more members than that.
    label = torch.cat([torch.zeros(1000), torch.ones(9000)]).to(torch.int16)
    got = cluster_labels(label, torch.zeros(10000, dtype=torch.int16), torch.ones(10000).half(), clusters=1, classes=2)
    torch.testing.assert_close(got, torch.tensor([[0.1, 0.9]]))


def chosen(assignment: reference.Ints, clusters: int, fraction: float, key: int) -> reference.Bools:
    """Which samples a fraction uses: with one class a sample, the columns of Eq. 8 that have mass."""
    samples = len(assignment)
    mass = cluster_labels(
        torch.arange(samples),
        ints(assignment),
        torch.ones(samples),
        clusters=clusters,
        classes=samples,
        fraction=fraction,
        key=key,
    )
    own = mass[ints(assignment), torch.arange(samples)]
    return np.asarray((own > 0).numpy())


@quick
@given(
    seed=seeds,
    samples=st.integers(2, 60),
    clusters=st.integers(1, 6),
    fraction=st.sampled_from([0.1, 0.25, 0.3, 0.5, 0.75, 1.0]),
    key=st.integers(0, 10**6),
)
def test_fraction_uses_a_share_of_each_cluster_and_weights_it_as_eq_8(
    seed: int, samples: int, clusters: int, fraction: float, key: int
) -> None:
    _, assignment, scores = members(seed, samples, clusters, 3)
    label = np.random.default_rng(seed).integers(0, 3, size=samples)
    kept = chosen(assignment, clusters, fraction, key)
    for k in range(clusters):
        size = int((assignment == k).sum())
        if size > 1 or (size == 1 and samples > 1):
            assert kept[assignment == k].sum() == reference.subset_size(size, fraction)
    want = reference.cluster_labels(label, assignment, scores, clusters=clusters, classes=3, kept=kept)
    got = cluster_labels(
        ints(label),
        ints(assignment),
        floats(scores),
        clusters=clusters,
        classes=3,
        fraction=fraction,
        key=key,
    )
    np.testing.assert_allclose(numpy64(got), want, atol=1e-5)


def test_unseen_samples_do_not_use_up_the_fraction() -> None:
    label = torch.cat([torch.full((50,), -1), torch.arange(10)])
    got = cluster_labels(
        label, torch.zeros(60, dtype=torch.int64), torch.ones(60), clusters=1, classes=10, fraction=0.5, key=1
    )
    assert int((got > 0).sum()) == 5


def test_the_key_decides_the_subset() -> None:
    assignment = np.arange(200) % 4
    assert (chosen(assignment, 4, 0.5, 7) == chosen(assignment, 4, 0.5, 7)).all()
    assert (chosen(assignment, 4, 0.5, 7) != chosen(assignment, 4, 0.5, 8)).sum() > 40


def test_the_subset_is_uniformly_random() -> None:
    assignment = np.zeros(6, dtype=np.int64)
    draws = np.array([chosen(assignment, 1, 0.5, key) for key in range(800)]).astype(np.float64)
    assert (draws.sum(axis=1) == 3).all()
    together = draws.T @ draws / len(draws)
    # Each of 6 is among the 3 half of the time, each pair with probability 3·2/(6·5) = 1/5.
    np.testing.assert_allclose(np.diag(together), 0.5, atol=0.08)
    np.testing.assert_allclose(together[~np.eye(6, dtype=bool)], 0.2, atol=0.07)


@quick
@given(
    seed=seeds,
    rows=st.integers(1, 6),
    classes=st.integers(1, 5),
    alpha=st.sampled_from([0.0, 0.5, 0.8, 1.0]),
    dtype=precisions,
)
def test_refine_matches_reference(seed: int, rows: int, classes: int, alpha: float, dtype: torch.dtype) -> None:
    rng = np.random.default_rng(seed)
    aligned, cluster = distributions(rng, rows, classes), distributions(rng, rows, classes)
    got = refine(floats(aligned, dtype), floats(cluster, dtype), alpha)
    np.testing.assert_allclose(numpy64(got), reference.refine(aligned, cluster, alpha), atol=tolerance(dtype))
    np.testing.assert_allclose(numpy64(got.sum(dim=1)), 1.0, atol=1e-5)


@pytest.mark.parametrize(("alpha", "winner"), [(0.8, 0), (0.2, 1)])
def test_neighbours_overrule_a_classifier_only_where_they_weigh_more(alpha: float, winner: int) -> None:
    got = refine(torch.tensor([[0.9, 0.1]]), torch.tensor([[0.0, 1.0]]), alpha)
    assert int(got.argmax()) == winner


def test_samples_counted_in_blocks_give_the_same_table(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    labels = torch.from_numpy(rng.integers(-1, 4, 50))
    assignment = torch.from_numpy(rng.integers(0, 6, 50))
    similarity = torch.from_numpy(rng.uniform(-1, 1, 50))
    whole = cluster_labels(labels, assignment, similarity, clusters=6, classes=4)
    monkeypatch.setattr("protocon.core.refine._BLOCK", 7)
    torch.testing.assert_close(cluster_labels(labels, assignment, similarity, clusters=6, classes=4), whole)
    assert whole.max() > 0.4  # no uniform table
