"""Metrics of a test set. METRICS has a line for each: what it is called in metrics.jsonl, and how it is computed."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor


def accuracy(logits: Tensor, labels: Tensor) -> float:
    """Share of images with a known label (not −1) whose largest logit is at it."""
    known = labels >= 0
    return float((logits.argmax(-1)[known] == labels[known]).double().mean())


def macro_accuracy(logits: Tensor, labels: Tensor) -> float:
    """Mean over classes of the share of a class's images that are right; classes without images are left out."""
    known = labels >= 0
    truth = labels[known]
    right = (logits.argmax(-1)[known] == truth).double()
    classes = int(logits.shape[1])
    counts = torch.bincount(truth, minlength=classes)
    shares = torch.bincount(truth, weights=right, minlength=classes)[counts > 0] / counts[counts > 0]
    return float(shares.mean())


METRICS: dict[str, Callable[[Tensor, Tensor], float]] = {"accuracy": accuracy, "macro_accuracy": macro_accuracy}
"""From logits (n, C) and labels (n,), −1 = unknown, to a number. Files have `test_NAME` for the weights as they are and
`test_NAME_ema` for their average."""


def confusion(logits: Tensor, labels: Tensor) -> list[tuple[int, int, int]]:
    """(true class, predicted class, images) wherever there are any; images without a label (−1) are left out.

    Sparse: a thousand classes have a million pairs, most of them empty.
    """
    known = labels >= 0
    classes = logits.shape[1]
    cells = labels[known] * classes + logits.argmax(-1)[known]
    pairs, counts = np.unique(cells.cpu().numpy(), return_counts=True)
    return [(cell // classes, cell % classes, n) for cell, n in zip(pairs.tolist(), counts.tolist(), strict=True)]
