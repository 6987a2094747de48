"""The space of frozen features, its neighbours and the mixture, each against a plain reference."""

from typing import Literal

import numpy as np
import pytest
import torch

from protocon.base.parts import look
from protocon.core import neighbours as neighbours_module
from protocon.core.feature_space import feature_space, root_normalised
from protocon.core.mixture import MixtureSettings, fit_mixture, seen_by_classes
from protocon.core.neighbours import nearest, nearest_among, neighbour_graph, neighbours, unit_rows
from protocon.core.softmax_regression import softmax
from protocon.networks.component_space import RootSpace


def rows(count: int = 60, width: int = 9, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).gamma(0.5, size=(count, width)).astype(np.float32)


def test_roots_have_length_one_and_keep_signs() -> None:
    values = rows() - 0.3
    found = root_normalised(values)
    expected = np.array([[np.copysign(abs(v) ** 0.5, v) for v in row] for row in values])
    expected /= np.sqrt((expected**2).sum(axis=1, keepdims=True))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    assert not root_normalised(np.zeros((2, 3))).any()


def test_components_are_those_of_a_singular_value_decomposition() -> None:
    values = rows()
    points = feature_space(values, 4)(values)
    centred = root_normalised(values) - root_normalised(values).mean(axis=0)
    left, scale, _ = np.linalg.svd(centred, full_matrices=False)
    expected = (left * scale)[:, :4]
    expected /= np.sqrt((expected**2).mean())
    signs = np.sign((points * expected).sum(axis=0))
    np.testing.assert_allclose(points, expected * signs, atol=2e-3)
    np.testing.assert_allclose((points**2).mean(), 1, rtol=1e-3)


def test_fewer_images_than_dimensions_give_fewer_dimensions() -> None:
    assert feature_space(rows(4), 64)(rows(4)).shape == (4, 3)
    assert feature_space(rows(1), 64)(rows(1)).shape == (1, 1)


def test_neighbours_are_those_of_the_full_table() -> None:
    units = unit_rows(rows(1500) - 0.5)
    found, cosines = nearest(units, units, 7, same=True)
    table = units @ units.T
    np.fill_diagonal(table, -2)
    np.testing.assert_allclose(cosines, -np.sort(-table, axis=1)[:, :7], atol=1e-6)
    np.testing.assert_allclose(np.take_along_axis(table, found, axis=1), cosines, atol=1e-6)
    near, _ = nearest(units[:5], units, 1)
    assert near[:, 0].tolist() == [0, 1, 2, 3, 4]


def test_of_many_points_nearly_all_neighbours_are_found_and_none_is_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbours_module, "EXACT", 100)
    units = unit_rows(np.random.default_rng(3).normal(size=(3000, 6)).astype(np.float32))
    units[10:40] = units[10]  # more copies than neighbours
    found, cosines = neighbours(units, 7)
    assert (found != np.arange(3000)[:, None]).all()
    np.testing.assert_allclose(np.einsum("nd,nkd->nk", units, units[found]), cosines, atol=1e-5)
    assert (np.diff(cosines, axis=1) <= 1e-6).all()
    exact, _ = nearest(units, units, 7, same=True)
    kept = [len(set(a) & set(b)) / 7 for a, b in zip(found[40:].tolist(), exact[40:].tolist(), strict=True)]
    assert np.mean(kept) > 0.7  # by chance: 7 of 3,000


@pytest.mark.parametrize("small", [0, 1024])
def test_the_graph_is_symmetric_before_rows_are_divided_and_has_no_negative_weight(
    small: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(neighbours_module, "_SMALL", small)
    units = unit_rows(rows(40) - 0.5)
    found, cosines = nearest(units, units, 5, same=True)
    graph = neighbour_graph(found, cosines)
    assert isinstance(graph, np.ndarray) == (small > 0)
    graph = graph if isinstance(graph, np.ndarray) else graph.toarray()
    expected = np.zeros((40, 40))
    for i in range(40):
        for j, cosine in zip(found[i], cosines[i], strict=True):
            expected[i, j] += max(cosine, 0) / 2
            expected[j, i] += max(cosine, 0) / 2
    np.testing.assert_allclose(graph, expected / expected.sum(axis=1, keepdims=True), atol=1e-6)


def plain_mixture(
    points: np.ndarray,
    labels: np.ndarray,
    anchor: np.ndarray,
    graph: np.ndarray,
    settings: MixtureSettings,
    frequencies: np.ndarray | None,
) -> tuple[np.ndarray, np.ndarray]:
    """One image and one class at a time."""
    (count, width), classes = points.shape, anchor.shape[1]
    prior = np.full(classes, 1 / classes)

    def opinions(scores: np.ndarray) -> np.ndarray:
        odds = np.ones(classes)
        for turn in range(4):
            new = np.zeros((count, classes))
            for i in range(count):
                new[i] = np.exp(scores[i]) * odds
                new[i] = np.eye(classes)[labels[i]] if labels[i] >= 0 else new[i] / new[i].sum()
            if frequencies is None:
                break
            if turn < 3:
                odds = odds * (frequencies + 1e-4) / (new.mean(axis=0) + 1e-4)
        return new

    probs = opinions(anchor)
    for _ in range(settings.rounds):
        shares = np.where(labels[:, None] >= 0, settings.label_weight, 1.0) * probs
        means = np.array([np.average(points, axis=0, weights=shares[:, c] + 1e-12) for c in range(classes)])
        covariance = np.zeros((width, width))
        for i in range(count):
            for c in range(classes):
                covariance += shares[i, c] * np.outer(points[i] - means[c], points[i] - means[c]) / shares.sum()
        if settings.covariance == "diagonal":
            covariance = np.diag(np.diag(covariance))
        level = np.trace(covariance) / width
        inverse = np.linalg.inv((1 - settings.shrinkage) * covariance + settings.shrinkage * level * np.eye(width))
        for _ in range(settings.inner):
            scores = np.zeros_like(probs)
            for i in range(count):
                for c in range(classes):
                    gaussian = -0.5 * (points[i] - means[c]) @ inverse @ (points[i] - means[c])
                    say = sum(graph[i, j] * probs[j, c] for j in range(count))
                    score = settings.anchor * anchor[i, c] + settings.likelihood * gaussian + settings.smoothing * say
                    scores[i, c] = score + np.log(prior[c])
            probs = opinions(scores)
            prior = (probs.mean(axis=0) + settings.uniform / classes) / (1 + settings.uniform)
    return probs, prior


@pytest.mark.parametrize(
    ("covariance", "label_weight", "frequencies"),
    [("diagonal", 1.0, None), ("full", 5.0, None), ("full", 5.0, (0.2, 0.3, 0.5))],
)
def test_the_mixture_is_its_plain_version(
    covariance: Literal["diagonal", "full"], label_weight: float, frequencies: tuple[float, ...] | None
) -> None:
    points = np.random.default_rng(1).normal(size=(30, 3))
    points[:15] += 1.5
    labels = np.full(30, -1)
    labels[[0, 1, 15, 29]] = (0, 0, 1, 2)
    anchor = np.log(softmax(np.random.default_rng(2).normal(size=(30, 3))))
    units = unit_rows(points)
    graph = neighbour_graph(*nearest(units, units, 4, same=True))
    settings = MixtureSettings(
        rounds=3, likelihood=0.7, smoothing=2.0, covariance=covariance, label_weight=label_weight
    )
    assert isinstance(graph, np.ndarray)
    wanted = None if frequencies is None else np.array(frequencies)
    probs, prior = plain_mixture(points, labels, anchor.astype(np.float64), graph, settings, wanted)
    found = fit_mixture(points, labels, anchor, graph, frequencies=wanted, settings=settings)
    np.testing.assert_allclose(found.probs, probs, atol=1e-4)
    np.testing.assert_allclose(found.prior, prior, atol=1e-4)


def test_pooled_blocks_are_scaled_as_in_the_space_of_the_heads() -> None:
    generator = np.random.default_rng(3)
    features = np.abs(generator.normal(size=(80, 40))).astype(np.float32)
    features[:, 24:] *= np.geomspace(0.01, 100, 16).astype(np.float32)  # channels of blocks differ in scale
    parts = look(24, 10, 6)
    heads = RootSpace(parts, 12)
    heads.fit(torch.from_numpy(features))
    points, wanted = feature_space(features, 12, parts)(features), heads(torch.from_numpy(features)).numpy()
    np.testing.assert_allclose(points @ points.T, wanted @ wanted.T, atol=2e-2)
    drowned = feature_space(features, 12)(features)
    assert np.abs(drowned @ drowned.T - wanted @ wanted.T).max() > 1


def test_the_classes_space_has_their_spread_the_same_in_all_directions() -> None:
    draw = np.random.default_rng(3)
    groups = draw.integers(4, size=400)
    mixing = draw.standard_normal((5, 5))
    points = (5.0 * draw.standard_normal((4, 5))[groups] + draw.standard_normal((400, 5)) @ mixing).astype(np.float32)
    shares = np.eye(4, dtype=np.float32)[groups]
    shaped = seen_by_classes(points, shares, shrinkage=0.0)
    inside = np.concatenate([shaped[groups == group] - shaped[groups == group].mean(0) for group in range(4)])
    np.testing.assert_allclose(inside.T @ inside / len(inside), np.eye(5), atol=1e-3)
    # Angles are those of Mahalanobis' distance, by a plain inverse.
    centred = np.concatenate([points[groups == group] - points[groups == group].mean(0) for group in range(4)])
    inverse = np.linalg.inv(centred.T.astype(np.float64) @ centred / len(centred))
    np.testing.assert_allclose(shaped @ shaped.T, points @ inverse @ points.T, rtol=1e-3, atol=1e-2)


def test_the_nearest_of_all_candidates_are_the_nearest() -> None:
    draw = np.random.default_rng(4)
    units = unit_rows(draw.standard_normal((50, 6)))
    everyone = np.array([[other for other in range(50) if other != own] for own in range(50)])
    expected, cosines = nearest(units, units, 5, same=True)
    found, likeness = nearest_among(units, everyone, 5)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_allclose(likeness, cosines, atol=1e-6)
    few, _ = nearest_among(units, everyone[:, :3], 5)
    assert few.shape == (50, 3)


def test_few_images_have_the_space_that_their_covariance_has() -> None:
    values = rows(30, 50)
    few, many = feature_space(values, 8), feature_space(np.tile(values, (2, 1)), 8)  # the same covariance, more rows
    np.testing.assert_allclose(few.matrix, many.matrix, atol=2e-3)
    copies = feature_space(np.tile(values[:4], (5, 1)), 8)  # four points span three directions
    assert np.isfinite(copies.matrix).all()
    assert not copies.matrix[:, 3:].any()
