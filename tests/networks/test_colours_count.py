"""How much colours count: against a plain version, and in folders where they matter and where they don't."""

import numpy as np
import pytest
import torch

from protocon.base.parts import Part, Parts
from protocon.core.neighbours import nearest, unit_rows
from protocon.networks.colours_count import ASKED, column_weights, likeness
from protocon.networks.component_space import RootSpace
from protocon.picking.seen import Seen

PARTS: Parts = (Part(20), Part(6, "block"), Part(9, "colours"))


def folder(count: int, *, shared: float, seed: int = 0) -> np.ndarray:
    """Images of five kinds, whose colours go with the kind as far as `shared` says."""
    draw = np.random.default_rng(seed)
    kinds, paints = draw.integers(5, size=count), draw.integers(5, size=count)
    seen = draw.normal(size=(5, 26))[kinds] + 1.5 * draw.normal(size=(count, 26))
    own = np.where(draw.random(count) < shared, kinds, paints)
    colours = draw.normal(size=(5, 9))[own] + 0.3 * draw.normal(size=(count, 9))
    return np.concatenate([seen, colours], axis=1).astype(np.float32)


def plain(rows: np.ndarray) -> float:
    """One image and one neighbour at a time."""
    rows = rows.astype(np.float64) - rows.mean(0)
    own, colours = rows[:, :20], rows[:, 26:]
    found = []
    for i, row in enumerate(own):
        cosines = [-2.0 if i == j else row @ b / np.linalg.norm(row) / np.linalg.norm(b) for j, b in enumerate(own)]
        found.append(np.argsort(cosines)[::-1][: min(15, max(5, len(rows) // 25))])

    def alike(part: np.ndarray) -> float:
        pairs = [part[i] @ part[j] for i, near in enumerate(found) for j in near]
        return float(np.mean(pairs) / np.mean([row @ row for row in part]))

    return float(np.clip((alike(colours) / alike(own) - 0.75) / 0.15, 0, 1))


@pytest.mark.parametrize("shared", [0.0, 0.88, 0.9, 1.0])
def test_the_weight_is_that_of_the_plain_version(shared: float) -> None:
    rows = folder(150, shared=shared)
    weights = column_weights(rows, PARTS)
    np.testing.assert_array_equal(weights[:26], 1)
    np.testing.assert_allclose(weights[26:], plain(rows), atol=1e-4)


def test_colours_count_where_neighbours_share_them_and_not_where_they_are_an_accident() -> None:
    assert (column_weights(folder(300, shared=1.0), PARTS)[26:] == 1).all()
    assert (column_weights(folder(300, shared=0.0), PARTS)[26:] == 0).all()
    between = column_weights(folder(300, shared=0.84), PARTS)[26:]
    assert 0 < between[0] < 1


def test_an_accident_does_not_count_more_because_earlier_blocks_know_colours() -> None:
    rows = folder(300, shared=0.0)
    rows[:, 20:26] = 3 * rows[:, 26:32]
    assert (column_weights(rows, PARTS)[26:] == 0).all()


def test_fewer_images_are_asked_of_fewer_neighbours() -> None:
    count = 200
    # Ten images a kind: were all asked of fifteen neighbours, most would be of other kinds.
    draw = np.random.default_rng(3)
    kinds = np.repeat(np.arange(count // 10), 10)
    seen, paint = (draw.normal(size=(count // 10, width))[kinds] for width in (26, 9))
    rows = np.concatenate([seen + 0.3 * draw.normal(size=(count, 26)), paint], axis=1).astype(np.float32)
    np.testing.assert_allclose(column_weights(rows, PARTS)[26:], plain(rows), atol=1e-4)
    assert (column_weights(rows, PARTS)[26:] == 1).all()


def test_of_a_few_images_nothing_is_asked_and_of_very_many_some() -> None:
    assert (column_weights(folder(31, shared=0.0), PARTS) == 1).all()
    many = folder(3 * ASKED, shared=0.86)
    chosen = many[np.linspace(0, len(many) - 1, ASKED).astype(int)]
    weights = column_weights(many, PARTS)
    assert 0 < weights[-1] < 1
    np.testing.assert_array_equal(weights, column_weights(chosen, PARTS))


def test_images_that_are_all_alike_leave_finite_weights() -> None:
    assert (column_weights(np.ones((40, 35), np.float32), PARTS) == 1).all()


def test_features_without_colours_are_not_asked() -> None:
    assert (column_weights(folder(100, shared=0.0)[:, :26], PARTS[:2]) == 1).all()


def test_likeness_is_one_of_copies_and_none_of_chance() -> None:
    rows = np.random.default_rng(0).normal(size=(400, 5)).astype(np.float32)
    copies = np.arange(400).reshape(-1, 2)[:, ::-1].reshape(-1, 1)
    assert likeness(np.repeat(rows[:200], 2, axis=0), copies) == pytest.approx(1, abs=1e-5)
    found, _ = nearest(unit_rows(rows), unit_rows(rows), 3, same=True)
    assert abs(likeness(np.random.default_rng(1).normal(size=(400, 8)).astype(np.float32), found)) < 0.1


@pytest.mark.parametrize("shared", [0.0, 1.0])
def test_the_heads_see_colours_that_count_and_no_others(shared: float) -> None:
    rows = folder(120, shared=shared)
    other = rows.copy()
    other[:, 26:] = other[::-1, 26:]
    space = RootSpace(PARTS, 10)
    space.fit(torch.from_numpy(rows))
    before, after = (space(torch.from_numpy(some)).numpy() for some in (rows, other))
    assert np.array_equal(before, after) == (shared == 0.0)


def test_where_images_are_picked_colours_do_not_count() -> None:
    rows = folder(120, shared=1.0)
    other = rows.copy()
    other[:, 26:] = other[::-1, 26:]
    points, others = (Seen(some, PARTS).points for some in (rows, other))
    np.testing.assert_array_equal(points, others)
