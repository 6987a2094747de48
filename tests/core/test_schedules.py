"""Schedules start and end where they should."""

import pytest

from protocon.core.schedules import cosine_between, fixmatch_cosine
from protocon.types import Progress


def at(step: int, *, of: int = 100) -> Progress:
    return Progress(epoch=0, step=step, total_epochs=1, total_steps=of)


def test_fixmatchs_cosine_falls_from_one_to_a_fifth() -> None:
    assert fixmatch_cosine(at(0)) == 1.0
    assert fixmatch_cosine(at(100)) == pytest.approx(0.19509, rel=1e-4)
    assert fixmatch_cosine(at(99)) > fixmatch_cosine(at(100))


def test_a_cosine_runs_between_its_ends() -> None:
    assert cosine_between(0.996, 1.0, at(0)) == 0.996
    assert cosine_between(0.996, 1.0, at(100)) == 1.0
    assert cosine_between(0.996, 1.0, at(50)) == pytest.approx(0.998)
    assert cosine_between(0.4, 0.04, at(25)) > cosine_between(0.4, 0.04, at(75))
