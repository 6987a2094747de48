"""How far a share measured on a sample may be from the truth."""

import math

Z95 = 1.959963984540054
"""97.5 % quantile of the normal distribution."""


def wilson_interval(share: float, n: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a share of n independent cases; stays within 0 and 1, even for 0 or n successes."""
    if n < 1:
        return 0.0, 1.0
    spread = Z95 * Z95 / n
    centre = (share + spread / 2) / (1 + spread)
    half = Z95 / (1 + spread) * math.sqrt(share * (1 - share) / n + spread / (4 * n))
    return max(0.0, centre - half), min(1.0, centre + half)
