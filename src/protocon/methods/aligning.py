"""Distribution alignment as methods use it: its settings, and the part that they make."""

from typing import Literal

from pydantic import Field

from protocon.core.alignment import DistributionAlignment, DualAlignment
from protocon.methods.base import MethodConfig, Problem
from protocon.methods.prior import ClassPrior, resolve_prior


class AlignmentSettings(MethodConfig):
    """Settings of methods that align predictions to class frequencies."""

    alignment_rate: float = Field(default=0.5, gt=0)
    """Step size of dual alignment."""
    alignment_window: int = Field(default=32, ge=1)
    """Batches in the running mean of predictions."""
    alignment_momentum: float | None = Field(default=None, ge=0, lt=1)
    """If given, an exponential mean of predictions instead of a window."""
    class_prior: ClassPrior = "uniform"
    """Class frequencies to align to: uniform, those of the labels, or a list."""


def build_alignment(
    settings: AlignmentSettings, problem: Problem, *, kind: Literal["mean", "dual"]
) -> DistributionAlignment | DualAlignment:
    """By the running mean, as published, or by a dual variable per class."""
    prior = resolve_prior(settings.class_prior, problem)
    if kind == "dual":
        return DualAlignment(problem.classes, rate=settings.alignment_rate, prior=prior)
    return DistributionAlignment(
        problem.classes, window=settings.alignment_window, momentum=settings.alignment_momentum, prior=prior
    )
