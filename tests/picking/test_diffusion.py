"""Likeness along the graph, against the matrix that it stands for."""

import numpy as np
import pytest

from protocon.core.neighbours import unit_rows
from protocon.picking.diffusion import NEIGHBOURS, Diffusion
from tests.picking.blobs import blobs


def slow(units: np.ndarray, decay: float) -> np.ndarray:
    """(I − α S)⁻¹ with every entry computed, then cosines."""
    count = len(units)
    cosines = units.astype(np.float64) @ units.T
    np.fill_diagonal(cosines, -np.inf)
    weights = np.zeros((count, count))
    for row in range(count):
        for other in np.argsort(-cosines[row], kind="stable")[:NEIGHBOURS]:
            weight = max(cosines[row, other], 1e-9) ** 3
            weights[row, other] += weight / 2
            weights[other, row] += weight / 2
    degrees = weights.sum(axis=1)
    symmetric = weights / np.sqrt(np.outer(degrees, degrees))
    kernel = np.linalg.inv(np.eye(count) - decay * symmetric)
    roots = np.sqrt(np.diag(kernel))
    return np.asarray(np.maximum(kernel / np.outer(roots, roots), 0))


def units_of(sizes: tuple[int, ...], spread: float = 0.5) -> np.ndarray:
    return unit_rows(blobs(sizes, spread=spread)[0])


@pytest.mark.parametrize("decay", [0.5, 0.9])
def test_all_directions_give_the_inverse(decay: float) -> None:
    units = units_of((50, 30, 20))
    found = Diffusion(units, decay=decay, rank=100).between(np.arange(100))
    np.testing.assert_allclose(found, slow(units, decay), atol=2e-5)


def test_the_smoothest_directions_come_near_it_where_there_are_many_points() -> None:
    units = units_of((400, 200, 100))  # more than are solved for at once
    expected = slow(units, 0.9)
    some = np.array([0, 5, 699])
    errors = [np.abs(Diffusion(units, rank=rank).between(some) - expected[some]).max() for rank in (16, 64, 300)]
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 0.05


def test_a_chain_of_images_is_alike_from_end_to_end_and_two_islands_are_not() -> None:
    angles = np.concatenate([np.linspace(0, 2.0, 60), 4.0 + np.linspace(0, 0.2, 60)])
    units = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    likeness = Diffusion(units).between(np.array([0]))[0]
    assert likeness[0] == pytest.approx(1, abs=1e-5)
    assert likeness[59] > 0.003  # two radians away, in small steps
    assert likeness[60:].max() < 1e-5  # two radians from the chain's end, with nothing in between


def test_a_point_outside_is_as_like_others_as_its_neighbours_are() -> None:
    units = units_of((60, 60), spread=0.2)
    whole, without = Diffusion(units), Diffusion(units[:-1])
    expected = whole.between(np.array([119]))[0][:-1]
    found = without.outside(units[-1])
    same_group = expected > 0.05
    assert np.corrcoef(found, expected)[0, 1] > 0.8
    assert found[same_group].min() > found[~same_group].max()


def test_copies_zeros_and_single_points_are_no_problem() -> None:
    for units in (np.ones((30, 4), np.float32) / 2, np.zeros((30, 4), np.float32), np.ones((1, 1), np.float32)):
        likeness = Diffusion(units).between(np.arange(len(units)))
        assert np.isfinite(likeness).all()
        np.testing.assert_allclose(np.diag(likeness), 1, atol=1e-5)


def test_the_same_points_give_the_same_bits() -> None:
    units = units_of((400, 200))
    first, second = (Diffusion(units).between(np.arange(20)) for _ in range(2))
    assert (first == second).all()
