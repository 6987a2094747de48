"""Features with known groups."""

import numpy as np


def blobs(
    sizes: tuple[int, ...], *, dimensions: int = 24, spread: float = 0.15, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Rows (N, D) around one direction per group, in mixed order, and the group of each."""
    generator = np.random.default_rng(seed)
    centres = generator.normal(size=(len(sizes), dimensions))
    groups = np.repeat(np.arange(len(sizes)), sizes)
    groups = groups[generator.permutation(len(groups))]
    rows = centres[groups] + spread * generator.normal(size=(len(groups), dimensions))
    return rows.astype(np.float32), groups
