"""Class by class and cluster by cluster: how good the pseudo-labels are, how pure and how large the clusters.

Computed at an epoch's end from what the method holds of every unlabelled image, so nothing is gathered on the way.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from torch import Tensor

_DIGITS = 6


def class_row(held: dict[str, Tensor], truth: np.ndarray, names: Sequence[str]) -> dict[str, Any] | None:
    """Pseudo-label accuracy and cluster purity of every class; None where the truth is not known.

    As in the paper's appendix, a cluster's purity is the share of its most frequent class, and a class's purity is the
    mean over the clusters in which it is the most frequent. A class without images, or without such a cluster, is left
    out.

    Args:
        held: `Method.held()`: `label` (N,) and `assignment` (N, H), either may be absent.
        truth: true classes of the unlabelled images, (N,), −1 where unknown.
        names: of the classes.
    """
    known = truth >= 0
    if not known.any() or not held:
        return None
    row: dict[str, Any] = {}
    if "label" in held:
        label = held["label"].cpu().numpy()
        right = np.bincount(truth[known & (label == truth)], minlength=len(names))
        total = np.bincount(truth[known], minlength=len(names))
        row["pseudo_accuracy"] = _by_name(names, np.arange(len(names))[total > 0], (right / np.maximum(total, 1)))
    if "assignment" in held:
        shares, dominant, sizes = purity(held["assignment"].cpu().numpy(), truth, classes=len(names))
        count = np.bincount(dominant, minlength=len(names))
        mean = np.bincount(dominant, weights=shares, minlength=len(names)) / np.maximum(count, 1)
        row["purity"] = _by_name(names, np.flatnonzero(count), mean)
        row["mean_purity"] = round(float((shares * sizes).sum() / max(1, sizes.sum())), _DIGITS)
    return row


def _by_name(names: Sequence[str], which: np.ndarray, values: np.ndarray) -> dict[str, float]:
    return {names[int(number)]: round(float(values[number]), _DIGITS) for number in which}


def purity(assignment: np.ndarray, truth: np.ndarray, *, classes: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Share of the most frequent class, that class, and members of known class, of every cluster that has some.

    Args:
        assignment: (N, H); every head's clusters count as clusters of their own; −1 = not seen yet.
        truth: (N,), −1 where unknown.
        classes: C.
    """
    clusters = int(assignment.max(initial=-1)) + 1
    shares, dominant, sizes = [], [], []
    for column in assignment.T:
        use = (column >= 0) & (truth >= 0)
        cells = column[use].astype(np.int64) * classes + truth[use]
        counts = np.bincount(cells, minlength=clusters * classes).reshape(clusters, classes)
        total = counts.sum(1)
        filled = total > 0
        shares.append(counts.max(1)[filled] / total[filled])
        dominant.append(counts.argmax(1)[filled])
        sizes.append(total[filled])
    return np.concatenate(shares), np.concatenate(dominant), np.concatenate(sizes)


def cluster_facts(held: dict[str, Tensor], names: Sequence[str]) -> dict[str, Any] | None:
    """Members, label and the label's share of every cluster, head by head; None for methods without clusters.

    Args:
        held: `Method.held()`: `assignment` (N, H) and `cluster_table` (H, K, C).
        names: of the classes.
    """
    if "cluster_table" not in held:
        return None
    table = held["cluster_table"].cpu().numpy()
    heads = []
    for column, shares in zip(held["assignment"].cpu().numpy().T, table, strict=True):
        members = np.bincount(column[column >= 0], minlength=len(shares))
        best = shares.argmax(1)
        heads.append(
            {
                "members": members.tolist(),
                "label": [names[int(number)] for number in best],
                "confidence": [round(float(value), _DIGITS) for value in shares[np.arange(len(best)), best]],
            }
        )
    return {"heads": heads}
