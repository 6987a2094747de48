"""Closeness against distances one by one, and likeness as the weighted mean of graph and distance."""

import numpy as np
import pytest

from protocon.core.neighbours import unit_rows
from protocon.picking.closeness import Closeness, covered_share
from protocon.picking.diffusion import Diffusion
from protocon.picking.likeness import DISTANCE, Likeness
from tests.picking.blobs import blobs


def slow(units: np.ndarray) -> np.ndarray:
    """exp(−distance²/width) of every pair; the width holds a tenth of all pairs."""
    count = len(units)
    squared = np.array([[float(((a - b) ** 2).sum()) for b in units.astype(np.float64)] for a in units])
    width = np.quantile([squared[i, j] for i in range(count) for j in range(i + 1, count)], 0.1)
    return np.asarray(np.exp(-squared / width))


def test_closeness_is_a_gaussian_of_the_distance() -> None:
    units = unit_rows(blobs((20, 15, 10))[0])
    expected, closeness = slow(units), Closeness(units)
    np.testing.assert_allclose(closeness.between(np.arange(45)), expected, atol=1e-4)
    np.testing.assert_allclose(closeness.outside(units[7]), expected[7], atol=1e-4)


def test_the_covered_share_is_the_mean_closeness_to_the_nearest_label() -> None:
    units = unit_rows(blobs((20, 15, 10))[0])
    labelled = np.array([3, 22, 40])
    assert covered_share(units, labelled) == pytest.approx(slow(units)[:, labelled].max(axis=1).mean(), abs=1e-4)
    assert covered_share(units, labelled[:0]) == 0


def test_likeness_is_the_mean_of_graph_and_distance() -> None:
    units = unit_rows(blobs((30, 20))[0])
    rows = np.array([0, 31, 49])
    parts = [of(units).between(rows) for of in (Diffusion, Closeness)]
    expected = (1 - DISTANCE) * parts[0] + DISTANCE * parts[1]
    assert np.abs(parts[0] - parts[1]).max() > 0.05
    np.testing.assert_allclose(Likeness(units).between(rows), expected, atol=1e-6)
    known, stranger = units[:-1], units[-1]
    outside = (1 - DISTANCE) * Diffusion(known).outside(stranger) + DISTANCE * Closeness(known).outside(stranger)
    np.testing.assert_allclose(Likeness(known).outside(stranger), outside, atol=1e-6)


def test_every_image_is_wholly_like_itself_and_less_like_others() -> None:
    units = unit_rows(blobs((30, 20))[0])
    table = Likeness(units).between(np.arange(50))
    np.testing.assert_allclose(np.diag(table), 1, atol=1e-5)
    assert (table[~np.eye(50, dtype=bool)] < 1).all()
    assert (table >= 0).all()
