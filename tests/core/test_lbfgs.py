"""Our L-BFGS finds the minimum that SciPy's finds."""

import numpy as np
import pytest
from scipy.optimize import minimize

from protocon.core.lbfgs import Loss, minimise


def logistic(seed: int, rows: int, width: int, penalty: float) -> Loss:
    """A ridge-regularised logistic loss of drawn points."""
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(rows, width)), rng.choice([-1.0, 1.0], size=rows)

    def loss(w: np.ndarray) -> tuple[float, np.ndarray]:
        margin = y * (x @ w)
        value = np.logaddexp(0.0, -margin).mean() + 0.5 * penalty * w @ w
        slope = -(x * (y / (1.0 + np.exp(margin)))[:, None]).mean(0) + penalty * w
        return float(value), slope

    return loss


@pytest.mark.parametrize(("seed", "penalty"), [(0, 1.0), (1, 0.01), (2, 1e-3)])
def test_a_classifiers_loss_is_as_low_as_scipys(seed: int, penalty: float) -> None:
    loss = logistic(seed, 60, 30, penalty)
    start = np.zeros(30)
    found = minimise(loss, start, steps=500)
    theirs = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 500})
    assert loss(found)[0] <= theirs.fun + 1e-7
    np.testing.assert_allclose(found, theirs.x, atol=2e-3)
    assert loss(found)[0] < loss(start)[0] - 1e-3


def test_a_narrow_valley_is_followed_to_its_end() -> None:
    scales = np.logspace(0, 4, 12)

    def loss(w: np.ndarray) -> tuple[float, np.ndarray]:
        return float(0.5 * (scales * (w - 1.0) ** 2).sum()), scales * (w - 1.0)

    np.testing.assert_allclose(minimise(loss, np.zeros(12), steps=300), np.ones(12), atol=1e-3)


def test_few_steps_end_early_and_a_minimum_is_left_alone() -> None:
    loss = logistic(0, 60, 30, 0.01)
    start = np.zeros(30)
    values = [loss(minimise(loss, start, steps=steps))[0] for steps in (0, 1, 3, 100)]
    assert values == sorted(values, reverse=True)
    assert values[0] == loss(start)[0]
    best = minimise(loss, start, steps=500)
    np.testing.assert_allclose(minimise(loss, best, steps=500), best, atol=1e-4)
