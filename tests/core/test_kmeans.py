"""Eq. 4–7 against the reference, and what the appendix's projection promises."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from protocon.core.kmeans import ConstrainedKMeans, assign, project_duals, update_duals
from tests import reference
from tests.core.inputs import (
    CLEAR,
    as_float32,
    floats,
    ints,
    numpy64,
    precisions,
    quick,
    same_state,
    seeds,
    snapshot,
    tolerance,
    unit_rows,
)

sizes = st.integers(1, 9)


@quick
@given(seed=seeds, rows=sizes, clusters=sizes, scale=st.sampled_from([0.0, 0.3, 5.0]), dtype=precisions)
def test_assign_maximises_similarity_plus_dual(
    seed: int, rows: int, clusters: int, scale: float, dtype: torch.dtype
) -> None:
    rng = np.random.default_rng(seed)
    scores = as_float32(rng.uniform(-1, 1, size=(rows, clusters)))
    duals = as_float32(scale * rng.random(clusters))
    clear = reference.assignment_margin(scores, duals) > CLEAR
    got = assign(floats(scores, dtype), floats(duals, dtype))
    assert got.dtype == torch.int64
    assert got.shape == (rows,)
    np.testing.assert_array_equal(got.numpy()[clear], reference.assign(scores, duals)[clear])
    # Eq. 4 is over the whole simplex: no soft assignment may beat the hard one.
    for i in range(rows):
        hard = reference.one_hot(int(got[i]), clusters)
        soft = rng.dirichlet(np.ones(clusters))
        best = reference.assignment_value(scores[i], duals, hard)
        assert best >= reference.assignment_value(scores[i], duals, soft) - 1e-6


@quick
@given(
    seed=seeds,
    rows=sizes,
    clusters=sizes,
    gamma=st.sampled_from([0.0, 3.0, 45.0]),
    rate=st.sampled_from([0.1, 2.0, 20.0]),
    bound=st.sampled_from([None, 0.2, 3.0]),
    dtype=precisions,
)
def test_dual_update_matches_reference(
    seed: int, rows: int, clusters: int, gamma: float, rate: float, bound: float | None, dtype: torch.dtype
) -> None:
    rng = np.random.default_rng(seed)
    duals = as_float32(rng.random(clusters))
    assignment = rng.integers(0, clusters, size=rows)
    counts = reference.cluster_sizes(assignment, clusters).astype(np.float64)
    want = reference.update_duals(duals, assignment, gamma=gamma, population=100, rate=rate, bound=bound)
    got = update_duals(
        floats(duals, dtype),
        floats(counts, dtype),
        batch_size=rows,
        gamma=gamma,
        population=100,
        rate=rate,
        bound=bound,
    )
    np.testing.assert_allclose(numpy64(got), want, rtol=tolerance(dtype), atol=10 * tolerance(dtype))


def test_dual_update_worked_by_hand() -> None:
    # B = 4, γ/N = 0.25, λ = 2. Shares 0.75, 0.25, 0 leave 0.5, 0 and −0.25 over: ρ − 2 × these, floored at 0.
    got = update_duals(
        torch.tensor([0.9, 0.3, 0.1]),
        torch.tensor([3.0, 1.0, 0.0]),
        batch_size=4,
        gamma=25.0,
        population=100,
        rate=2.0,
    )
    torch.testing.assert_close(got, torch.tensor([0.0, 0.3, 0.6]))


@quick
@given(seed=seeds, clusters=st.integers(2, 12), rows=st.integers(2, 40))
def test_duals_rise_for_starving_clusters_and_fall_for_full_ones(seed: int, clusters: int, rows: int) -> None:
    rng = np.random.default_rng(seed)
    duals = 10 + floats(rng.random(clusters))  # far from the floor, so falling shows
    counts = floats(rng.multinomial(rows, rng.dirichlet(np.full(clusters, 0.3))).astype(np.float64))
    need = 0.9 * rows / clusters
    moved = update_duals(duals, counts, batch_size=rows, gamma=0.9 * 100 / clusters, population=100, rate=1.0)
    assert torch.equal(moved > duals, counts < need)
    assert torch.equal(moved < duals, counts > need)
    assert (counts > need).any()  # a batch cannot starve every cluster: the test is never vacuous


def raw_duals(seed: int, clusters: int, scale: float) -> reference.Floats:
    return as_float32(scale * np.random.default_rng(seed).normal(loc=0.3, size=clusters))


@quick
@given(
    seed=seeds,
    clusters=st.integers(1, 20),
    scale=st.sampled_from([0.01, 1.0, 30.0]),
    bound=st.sampled_from([0.05, 1.0, 20.0]),
    dtype=precisions,
)
def test_projection_is_the_nearest_point_of_the_set(
    seed: int, clusters: int, scale: float, bound: float, dtype: torch.dtype
) -> None:
    duals = raw_duals(seed, clusters, scale)
    got = numpy64(project_duals(floats(duals, dtype), bound))
    slack = tolerance(dtype) * max(1.0, scale, bound) * clusters
    assert (got >= 0).all()
    assert got.sum() <= bound + slack
    np.testing.assert_allclose(got, reference.project_duals(duals, bound), atol=slack)
    # Nearest point of a convex polytope: no corner lies on the far side of the plane through it.
    corners = [np.zeros(clusters), *(bound * np.eye(clusters))]
    for corner in corners:
        assert (duals - got) @ (corner - got) <= slack * max(1.0, scale, bound)


@quick
@given(seed=seeds, clusters=st.integers(1, 20), scale=st.sampled_from([0.01, 1.0, 30.0]))
def test_projection_is_idempotent_and_leaves_the_inside_alone(seed: int, clusters: int, scale: float) -> None:
    once = project_duals(floats(raw_duals(seed, clusters, scale), torch.float64), 2.0)
    torch.testing.assert_close(project_duals(once, 2.0), once, rtol=0, atol=1e-12)
    inside = floats(np.random.default_rng(seed).random(clusters) / clusters, torch.float64)
    torch.testing.assert_close(project_duals(inside, 1.0), inside, rtol=0, atol=0)


def build(clusters: int, dim: int, **changes: object) -> ConstrainedKMeans:
    options: dict[str, object] = {
        "gamma": 5.0,
        "population": 60,
        "dual_rate": 0.5,
        "heads": 1,
        "seed": 3,
    }
    return ConstrainedKMeans(clusters=clusters, dim=dim, **{**options, **changes})  # type: ignore[arg-type]


@quick
@given(
    seed=seeds,
    rows=st.integers(1, 8),
    clusters=st.integers(1, 6),
    dim=st.integers(2, 6),
    heads=st.integers(1, 3),
    every_batch=st.booleans(),
    bound=st.sampled_from([None, 0.3]),
)
def test_two_epochs_of_online_kmeans_match_reference(
    seed: int, rows: int, clusters: int, dim: int, heads: int, every_batch: bool, bound: float | None
) -> None:
    rng = np.random.default_rng(seed)
    kmeans = build(clusters, dim, heads=heads, dual_bound=bound, seed=seed % 1000)
    centroids, duals = numpy64(kmeans.centroids), numpy64(kmeans.duals)
    for _ in range(2):
        received: list[reference.Floats] = []
        chosen: list[reference.Ints] = []
        for _ in range(3):
            batch = unit_rows(rng, rows, dim)
            found = kmeans.assign(floats(batch))
            index = found.index.numpy()
            received.append(batch)
            chosen.append(index)
            for h in range(heads):
                scores = reference.similarity(batch, centroids[h])
                clear = reference.assignment_margin(scores, duals[h]) > 100 * CLEAR
                np.testing.assert_array_equal(index[clear, h], reference.assign(scores, duals[h])[clear])
                own = scores[np.arange(rows), index[:, h]]
                np.testing.assert_allclose(numpy64(found.similarity[:, h]), own, atol=1e-5)
                duals[h] = reference.update_duals(
                    duals[h], index[:, h], gamma=5.0, population=60, rate=0.5, bound=bound
                )
                if every_batch:
                    centroids[h] = reference.update_centroids(
                        centroids[h], np.concatenate(received), np.concatenate(chosen)[:, h]
                    )
            kmeans.update(floats(batch), found.index, move_centroids=every_batch)
            np.testing.assert_allclose(numpy64(kmeans.duals), duals, atol=1e-5)
            np.testing.assert_allclose(numpy64(kmeans.centroids), centroids, atol=1e-3)
        kmeans.end_epoch(move_centroids=not every_batch)
        if not every_batch:
            for h in range(heads):
                centroids[h] = reference.update_centroids(
                    centroids[h], np.concatenate(received), np.concatenate(chosen)[:, h]
                )
        np.testing.assert_allclose(numpy64(kmeans.centroids), centroids, atol=1e-3)
        # Without this, a mean of nearly opposite vectors would let rounding grow from step to step.
        centroids = numpy64(kmeans.centroids)
        assert not kmeans.counts.any()
        assert not kmeans.sums.any()


def test_centroids_start_and_stay_on_the_unit_sphere() -> None:
    kmeans = build(7, 5, heads=2)
    rng = np.random.default_rng(0)
    for _ in range(3):
        torch.testing.assert_close(kmeans.centroids.norm(dim=-1), torch.ones(2, 7))
        batch = floats(unit_rows(rng, 20, 5))
        kmeans.update(batch, kmeans.assign(batch).index, move_centroids=True)
    assert kmeans.duals.any()  # it did learn something


def test_assign_changes_nothing() -> None:
    kmeans = build(4, 3)
    batch = floats(unit_rows(np.random.default_rng(1), 10, 3))
    kmeans.update(batch, kmeans.assign(batch).index, move_centroids=True)
    before = snapshot(kmeans)
    kmeans.assign(batch)
    assert same_state(before, snapshot(kmeans))


def test_similarity_is_reported_without_the_dual() -> None:
    kmeans = build(3, 4)
    batch = floats(unit_rows(np.random.default_rng(2), 6, 4))
    kmeans.duals.copy_(torch.tensor([[0.0, 50.0, 0.0]]))
    found = kmeans.assign(batch)
    assert (found.index == 1).all()  # the dual decides …
    torch.testing.assert_close(found.similarity[:, 0], batch @ kmeans.centroids[0, 1])  # … but is not the score


@pytest.mark.parametrize("every_batch", [True, False])
def test_a_centroid_with_no_member_keeps_its_place(every_batch: bool) -> None:
    kmeans = build(3, 4)
    start = kmeans.centroids.clone()
    batch = floats(unit_rows(np.random.default_rng(4), 5, 4))
    index = torch.tensor([[0], [0], [2], [2], [2]])
    kmeans.update(batch, index, move_centroids=every_batch)
    kmeans.end_epoch(move_centroids=not every_batch)
    assert torch.equal(kmeans.centroids[0, 1], start[0, 1])
    for k in (0, 2):
        mean = batch[index[:, 0] == k].mean(dim=0)
        torch.testing.assert_close(kmeans.centroids[0, k], mean / mean.norm())


def test_without_move_the_centroids_wait_for_the_end_of_the_epoch() -> None:
    kmeans = build(3, 4)
    start = kmeans.centroids.clone()
    batch = floats(unit_rows(np.random.default_rng(5), 9, 4))
    for _ in range(2):
        kmeans.update(batch, kmeans.assign(batch).index, move_centroids=False)
        assert torch.equal(kmeans.centroids, start)
    kmeans.end_epoch(move_centroids=True)
    assert not torch.equal(kmeans.centroids, start)


def test_a_new_epoch_forgets_the_members_of_the_last() -> None:
    kmeans = build(1, 2, gamma=0.0)
    east, north = torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 1.0]])
    cluster = torch.zeros(1, 1, dtype=torch.int64)
    kmeans.update(east, cluster, move_centroids=True)
    kmeans.update(north, cluster, move_centroids=True)
    torch.testing.assert_close(kmeans.centroids[0, 0], torch.tensor([0.5**0.5, 0.5**0.5]))
    kmeans.end_epoch(move_centroids=False)
    kmeans.update(north, cluster, move_centroids=True)
    torch.testing.assert_close(kmeans.centroids[0, 0], north[0])


def test_seed_decides_the_start_and_heads_start_apart() -> None:
    one, again, other = build(5, 8, heads=2), build(5, 8, heads=2), build(5, 8, heads=2, seed=4)
    assert torch.equal(one.centroids, again.centroids)
    assert not torch.isclose(one.centroids, other.centroids).all(dim=-1).any()
    assert not torch.isclose(one.centroids[0], one.centroids[1]).all(dim=-1).any()


def test_each_head_runs_as_if_it_were_alone() -> None:
    heads = build(4, 6, heads=2)
    alone = [build(4, 6), build(4, 6)]
    for h, single in enumerate(alone):
        single.centroids.copy_(heads.centroids[h : h + 1])
    rng = np.random.default_rng(6)
    for _ in range(4):
        batch = floats(unit_rows(rng, 12, 6))
        found = heads.assign(batch)
        assert not torch.equal(found.index[:, 0], found.index[:, 1])
        for h, single in enumerate(alone):
            own = single.assign(batch)
            assert torch.equal(own.index[:, 0], found.index[:, h])
            single.update(batch, own.index, move_centroids=True)
        heads.update(batch, found.index, move_centroids=True)
        for h, single in enumerate(alone):
            torch.testing.assert_close(single.centroids[0], heads.centroids[h])
            torch.testing.assert_close(single.duals[0], heads.duals[h])


def test_mixed_precision_around_it_does_not_coarsen_the_similarity() -> None:
    # In bfloat16 cosines have 8 bits: near clusters would tie, and ties go to the lower number.
    kmeans = build(200, 16)
    batch = floats(unit_rows(np.random.default_rng(8), 500, 16))
    outside = kmeans.assign(batch)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        inside = kmeans.assign(batch)
    assert torch.equal(inside.index, outside.index)
    assert torch.equal(inside.similarity, outside.similarity)
    assert len(torch.unique(outside.similarity)) > 490


def test_ints_and_floats_are_both_counts() -> None:
    duals = torch.tensor([0.2, 0.4])
    options = {"batch_size": 3, "gamma": 2.0, "population": 10, "rate": 1.0}
    whole = update_duals(duals, ints(np.array([1, 2])), **options)  # type: ignore[arg-type]
    broken = update_duals(duals, torch.tensor([1.0, 2.0]), **options)  # type: ignore[arg-type]
    torch.testing.assert_close(whole, broken)
    assert not torch.equal(whole, duals)


@pytest.mark.parametrize("ties", [False, True])
def test_more_clusters_than_fit_a_block_are_assigned_as_if_they_did(
    monkeypatch: pytest.MonkeyPatch, ties: bool
) -> None:
    kmeans = ConstrainedKMeans(clusters=23, dim=6, gamma=1.0, population=100, dual_rate=0.1, heads=2)
    if ties:
        kmeans.centroids[:, 7:] = kmeans.centroids[:, 1:2]  # equal ones in every block: the first must win
    kmeans.duals.copy_(torch.linspace(0, 0.3, 23).flip(0))
    rows = floats(unit_rows(np.random.default_rng(0), 40, 6), torch.float32)
    whole = kmeans.assign(rows)
    monkeypatch.setattr("protocon.core.kmeans._BLOCK", 5)
    blocked = kmeans.assign(rows)
    assert torch.equal(blocked.index, whole.index)
    torch.testing.assert_close(blocked.similarity, whole.similarity)
    assert len(set(whole.index.flatten().tolist())) > 5
