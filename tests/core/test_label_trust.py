"""Labels that are held out: whose opinion counts, and how sure it may be."""

import numpy as np
import pytest

from protocon.core.label_trust import HeldOut, fitted_temperature, linear_share, mix, softened


def opinions(right: np.ndarray, known: np.ndarray, sure: float = 0.9) -> np.ndarray:
    """Three classes; the right one, or the next, gets `sure`."""
    said = np.where(right, known, (known + 1) % 3)
    return np.where(np.eye(3, dtype=bool)[said], sure, (1 - sure) / 2)


def held_out(linear: list[bool], agreed: list[bool]) -> HeldOut:
    known = np.arange(len(linear)) % 3
    return HeldOut(known, opinions(np.array(linear), known), opinions(np.array(agreed), known))


def test_the_linear_classifier_counts_where_it_knows_labels_that_the_agreement_gets_wrong() -> None:
    better = linear_share(held_out([True] * 10, [False] * 8 + [True] * 2), 0.1)
    equal = linear_share(held_out([True] * 5 + [False] * 5, [False] * 5 + [True] * 5), 0.1)
    worse = linear_share(held_out([False] * 8 + [True] * 2, [True] * 10), 0.1)
    assert better > 0.7
    assert 0.1 < equal < 0.4  # neighbours are believed to help until something is said against them
    assert worse == 0.1


def test_labels_that_both_know_tell_nothing() -> None:
    few, many = (linear_share(held_out([True] * n, [True] * n), 0.1) for n in (3, 30))
    assert few == many == 0.1  # P(p < 1/2) of Beta(6, 2) is a sixteenth
    assert linear_share(held_out([], []), 0.1) == 0.1


def test_confidence_becomes_the_share_that_is_right() -> None:
    known = np.arange(300) % 3
    right = np.arange(300) % 10 < 6  # 60 % are right, and 95 % is said
    probs = opinions(right, known, sure=0.95)
    calm = softened(probs, fitted_temperature(probs, known))
    assert calm.max(1).mean() == pytest.approx(0.6, abs=0.05)
    assert (calm.argmax(1) == probs.argmax(1)).all()
    modest = opinions(right, known, sure=0.4)
    assert fitted_temperature(modest, known) == 1.0  # it is never made surer
    assert fitted_temperature(probs[:0], known[:0]) == 1.0


def test_a_mixture_of_opinions_sums_to_one() -> None:
    linear, agreed = np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]])
    np.testing.assert_allclose(mix(linear, agreed, 0.25), [[0.25, 0.75]])
