"""Distribution alignment as methods use it: its settings, and the part that they make."""

from typing import Literal, Self

import torch
from pydantic import Field
from torch import Tensor

from protocon.core.alignment import DistributionAlignment, DualAlignment
from protocon.core.running_prior import FollowingAlignment, RunningPrior
from protocon.methods.base import MethodConfig, Problem, Samples
from protocon.methods.needs import Facts
from protocon.methods.neighbourhood import NeighbourhoodSettings, find_neighbourhood
from protocon.methods.prior import ClassPrior, resolve_prior


class AlignmentSettings(MethodConfig):
    """Settings of methods that align predictions to class frequencies."""

    alignment_rate: float = Field(default=0.5, gt=0)
    """Step size of dual alignment."""
    alignment_window: int = Field(default=32, ge=1)
    """Batches in the running mean of predictions."""
    alignment_momentum: float | None = Field(default=None, ge=0, lt=1)
    """If given, an exponential mean of predictions instead of a window."""
    class_prior: ClassPrior | Literal["auto", "running"] = "auto"
    """Class frequencies to align to: uniform; those of the labels; a list; estimated from all features, where these do
    not change; or running: estimated while training, from the predictions. auto: estimated on a frozen encoder, else
    uniform."""
    prior_weight: float = Field(default=0.5, ge=0, le=1)
    """Share of the running estimate in the frequencies that are aligned to; the rest is uniform."""
    prior_momentum: float = Field(default=0.99, ge=0, lt=1)
    """Share of the running estimate that a batch keeps."""

    def with_prior(self, facts: Facts, reasons: dict[str, str]) -> Self:
        """The settings with the class frequencies to align to."""
        if facts.frozen:
            reason = "from all features: classes are seldom equally frequent; to overrule it, class_prior=uniform"
            return self.choose(reasons, "class_prior", "estimated", reason)
        return self.model_copy(update={"class_prior": "uniform"}) if self.class_prior == "auto" else self


class ResolvedAlignment(AlignmentSettings):
    """The same without `auto`."""

    class_prior: ClassPrior | Literal["running"]


Alignment = DistributionAlignment | DualAlignment | FollowingAlignment


def build_alignment(settings: ResolvedAlignment, problem: Problem, *, kind: Literal["mean", "dual"]) -> Alignment:
    """By the running mean, as published, or by a dual variable per class.

    Args:
        settings: of the method.
        problem: sizes, and the labels that a prior may be counted from.
        kind: which of the two.
    """
    if settings.class_prior == "running":
        source = resolve_prior("labels", problem)
        assert source is not None
        running = RunningPrior(source, momentum=settings.prior_momentum, weight=settings.prior_weight)
        return FollowingAlignment(
            _alignment_to(torch.full_like(source, 1.0 / len(source)), settings, kind, problem.classes), running
        )
    prior = resolve_prior(settings.class_prior, problem)
    return _alignment_to(prior, settings, kind, problem.classes)


def _alignment_to(
    prior: Tensor | None, settings: ResolvedAlignment, kind: Literal["mean", "dual"], classes: int
) -> DistributionAlignment | DualAlignment:
    if kind == "dual":
        return DualAlignment(classes, rate=settings.alignment_rate, prior=prior)
    return DistributionAlignment(
        classes, window=settings.alignment_window, momentum=settings.alignment_momentum, prior=prior
    )


def estimate_prior(alignment: Alignment, settings: ResolvedAlignment, samples: Samples, problem: Problem) -> None:
    """Let predictions be aligned to the class frequencies that all features suggest, where that is asked for.

    Args:
        alignment: of the method.
        settings: of the method.
        samples: features of the whole training set.
        problem: sizes.
    """
    if settings.class_prior == "estimated" and alignment.prior is not None:
        found = find_neighbourhood(samples, classes=problem.classes, settings=NeighbourhoodSettings(held_out_groups=0))
        alignment.prior.copy_(torch.from_numpy(found.prior))
