"""PAWS's parts: a soft nearest-neighbour classifier, sharpening, and the mean-entropy term."""

import torch
from torch import Tensor


def soft_neighbours(rows: Tensor, support: Tensor, labels: Tensor, *, temperature: float) -> Tensor:
    """Class probabilities (n, C): labels of the support set, weighted by similarity (PAWS, Eq. 1).

    Args:
        rows: unit-norm embeddings, (n, d).
        support: unit-norm embeddings of the support set, (m, d).
        labels: their classes as distributions, (m, C).
        temperature: τ.
    """
    return (rows @ support.T / temperature).softmax(-1) @ labels.to(rows.dtype)


def sharpen(probs: Tensor, temperature: float) -> Tensor:
    """p^(1/T), adding up to 1 again (PAWS, section 3)."""
    powered = probs ** (1.0 / temperature)
    return powered / powered.sum(-1, keepdim=True)


def smoothed_labels(targets: Tensor, *, classes: int, smoothing: float) -> Tensor:
    """One-hot rows (m, C), mixed with the uniform distribution.

    Args:
        targets: classes, (m,) int64.
        classes: C.
        smoothing: share of the uniform distribution.
    """
    one_hot = torch.nn.functional.one_hot(targets, classes).to(torch.get_default_dtype())
    return (1.0 - smoothing) * one_hot + smoothing / classes
