"""Means, spreads and paired differences over seeds: the numbers behind the tables."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

CONFIDENCE = 0.95


@dataclass(frozen=True)
class SeedSpread:
    """Mean and sample standard deviation (n − 1 in the denominator) of n values."""

    n: int
    mean: float | None
    """None without values."""
    std: float | None
    """None with fewer than two values, which tell nothing of their spread."""


def spread(values: Sequence[float]) -> SeedSpread:
    """Mean and sample standard deviation of values."""
    n = len(values)
    if n == 0:
        return SeedSpread(0, None, None)
    mean = math.fsum(values) / n
    if n == 1:
        return SeedSpread(1, mean, None)
    return SeedSpread(n, mean, math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (n - 1)))


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
    return mean_interval([ours[seed] - theirs[seed] for seed in sorted(ours.keys() & theirs.keys())])


def mean_interval(values: Sequence[float]) -> Difference:
    """The mean of values with its 95 % t interval."""
    found = spread(values)
    if found.mean is None or found.std is None:
        return Difference(found.n, found.mean, None, None)
    from scipy.stats import t  # imported here: it takes half a second

    half = float(t.ppf((1 + CONFIDENCE) / 2, found.n - 1)) * found.std / math.sqrt(found.n)
    return Difference(found.n, found.mean, found.mean - half, found.mean + half)


def spread_ratio(ours: Sequence[float], theirs: Sequence[float]) -> Difference:
    """Their standard deviation divided by ours, with the 95 % interval of Fisher's F distribution.

    None of it where a side has fewer than two values, or does not vary at all.
    """
    mine, other = spread(ours), spread(theirs)
    n = min(mine.n, other.n)
    if not mine.std or not other.std:
        return Difference(n, None, None, None)
    from scipy.stats import f

    ratio, tail = other.std / mine.std, (1 + CONFIDENCE) / 2
    low = ratio / math.sqrt(float(f.ppf(tail, other.n - 1, mine.n - 1)))
    return Difference(n, ratio, low, ratio * math.sqrt(float(f.ppf(tail, mine.n - 1, other.n - 1))))
