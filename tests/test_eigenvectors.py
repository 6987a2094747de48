"""The largest eigenvectors, of small matrices and of large ones."""

import numpy as np
import pytest

from protocon.base import eigenvectors
from protocon.base.eigenvectors import largest_eigenvectors


@pytest.mark.parametrize("small", [0, 1024])
def test_they_solve_the_equation_and_are_the_largest(small: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(eigenvectors, "_SMALL", small)
    points = np.random.default_rng(0).normal(size=(40, 12)) * np.arange(1, 13)
    matrix = points.T @ points
    values, vectors = largest_eigenvectors(matrix, 5)
    np.testing.assert_allclose(values, np.sort(np.linalg.eigvalsh(matrix))[::-1][:5])
    np.testing.assert_allclose(matrix @ vectors, vectors * values, atol=1e-8 * values[0])
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(5), atol=1e-10)
