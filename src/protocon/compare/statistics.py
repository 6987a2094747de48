"""Means, spreads and paired differences over seeds: the numbers behind the tables."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Spread:
    """Mean and sample standard deviation (n − 1 in the denominator) of n values."""

    n: int
    mean: float | None
    """None without values."""
    std: float | None
    """None with fewer than two values, which tell nothing of their spread."""


def spread(values: Sequence[float]) -> Spread:
    """Mean and sample standard deviation of values."""
    n = len(values)
    if n == 0:
        return Spread(0, None, None)
    mean = math.fsum(values) / n
    if n == 1:
        return Spread(1, mean, None)
    return Spread(n, mean, math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (n - 1)))


@dataclass(frozen=True)
class Difference:
    """Mean of paired differences, and the interval that holds the true mean with 95 % confidence."""

    n: int
    """Seeds that both sides have."""
    mean: float | None
    low: float | None
    """None with fewer than two pairs."""
    high: float | None


def paired_difference(ours: Mapping[int, float], theirs: Mapping[int, float]) -> Difference:
    """Ours − theirs over the seeds that both have, with its paired t interval.

    Args:
        ours: accuracy by seed.
        theirs: accuracy by seed; one seed is one split of the labels for all methods.
    """
    pairs = spread([ours[seed] - theirs[seed] for seed in sorted(ours.keys() & theirs.keys())])
    if pairs.mean is None or pairs.std is None:
        return Difference(pairs.n, pairs.mean, None, None)
    from scipy.stats import t  # imported here: it takes half a second

    half = float(t.ppf((1 + CONFIDENCE) / 2, pairs.n - 1)) * pairs.std / math.sqrt(pairs.n)
    return Difference(pairs.n, pairs.mean, pairs.mean - half, pairs.mean + half)
