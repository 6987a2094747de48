"""The class frequencies that pseudo-labels are aligned to."""

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor

from protocon.errors import ConfigError
from protocon.methods.base import Problem

Word = Literal["uniform", "labels", "estimated"]
ClassPrior = Word | tuple[float, ...]
"""Class frequencies, or what they are taken from."""


def resolve_prior(prior: Word | Sequence[float], problem: Problem) -> Tensor | None:
    """Class frequencies (C,) that sum to 1, or None for uniform.

    Args:
        prior: `uniform`, `labels` (each class's share of the labelled set) or one number per class; `estimated` is
            uniform until `Method.prepare` has seen the features.
        problem: sizes and labelled targets.
    """
    if prior == "uniform":
        return None
    if prior == "estimated":
        return torch.full((problem.classes,), 1.0 / problem.classes)
    if prior == "labels":
        counts = torch.bincount(problem.labelled_targets.cpu(), minlength=problem.classes).float()
    else:
        counts = torch.tensor([float(share) for share in prior])
        if len(counts) != problem.classes or bool((counts < 0).any()) or not bool(counts.sum() > 0):
            raise ConfigError(
                f"class_prior has {len(counts)} numbers, expected {problem.classes} that are not negative "
                "and not all zero: one frequency per class, or the word uniform, labels or estimated"
            )
    return counts / counts.sum()
