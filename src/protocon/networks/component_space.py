"""A frozen encoder's features as points among which distances mean something.

Pooled activations have long tails: a few large ones decide every distance. Signed roots at unit length, in principal
components, put images of one class nearer to each other. Features of several layers are scaled one by one, so that the
widest does not drown the others.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

Kind = Literal["roots", "standard"]
BLOCK_WEIGHT = 0.4
"""Length of a pooled block's part; the encoder's own features have 1."""
FITTED_TOGETHER = 4096
"""Images whose features are held in double precision at a time, while the space is fitted."""


class StandardSpace(nn.Module):
    """Features (n, D) → components (n, k): centred, then a matrix. What runs of version 0.1 have.

    Args:
        mean: (D,).
        matrix: (D, k).
    """

    mean: Tensor
    matrix: Tensor

    def __init__(self, mean: Tensor, matrix: Tensor) -> None:
        super().__init__()
        self.register_buffer("mean", mean)
        self.register_buffer("matrix", matrix)

    def forward(self, features: Tensor) -> Tensor:
        """Components of each row."""
        return (features - self.mean) @ self.matrix


class RootSpace(nn.Module):
    """Features (n, D) → components (n, k) with mean variance 1.

    The first part is the encoder's own features: signed roots at unit length, centred, at unit length again. Further
    parts are pooled blocks, whose channels differ in scale: standardised, signed roots, at length `BLOCK_WEIGHT`.

    Args:
        parts: lengths of the parts; their sum is D.
        components: k.
    """

    shift: Tensor
    """Per feature, (D,): for the first part of its normalised roots, for the others of the features."""
    scale: Tensor
    """Per feature, (D,)."""
    mean: Tensor
    """Of all parts together, (D,)."""
    matrix: Tensor
    """From centred parts to components, (D, k)."""

    def __init__(self, parts: Sequence[int], components: int) -> None:
        super().__init__()
        self.parts = list(parts)
        width = sum(parts)
        self.register_buffer("shift", torch.zeros(width))
        self.register_buffer("scale", torch.ones(width))
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("matrix", torch.zeros(width, components))

    def forward(self, features: Tensor) -> Tensor:
        """Components of each row."""
        return (self._normalised(features) - self.mean) @ self.matrix

    def _normalised(self, features: Tensor) -> Tensor:
        own, *blocks = torch.split(features, self.parts, dim=-1)
        shifts, scales = torch.split(self.shift, self.parts), torch.split(self.scale, self.parts)
        done = [F.normalize(F.normalize(_root(own), dim=-1) - shifts[0], dim=-1)]
        for block, shift, scale in zip(blocks, shifts[1:], scales[1:], strict=True):
            done.append(BLOCK_WEIGHT * F.normalize(_root((block - shift) / scale), dim=-1))
        return torch.cat(done, dim=-1)

    @torch.no_grad()
    def fit(self, clean: Tensor) -> None:
        """Learn all buffers from clean features (N, D) of any precision.

        Sums are in double precision, and each component's largest entry is positive, so that the result does not
        depend on the order of sums.
        """
        first = self.parts[0]

        def mean(of: Callable[[Tensor], Tensor]) -> Tensor:
            blocks = (clean[start : start + FITTED_TOGETHER].float() for start in range(0, len(clean), FITTED_TOGETHER))
            return torch.stack([of(rows).double().sum(0) for rows in blocks]).sum(0) / len(clean)

        self.shift[:first] = mean(lambda rows: F.normalize(_root(rows[:, :first]), dim=-1))
        centre = mean(lambda rows: rows[:, first:])
        self.shift[first:] = centre
        self.scale[first:] = mean(lambda rows: (rows[:, first:] - centre).square()).sqrt().clamp(min=1e-6)
        self.mean.copy_(mean(self._normalised))
        blocks = (clean[start : start + FITTED_TOGETHER].float() for start in range(0, len(clean), FITTED_TOGETHER))
        centred = (self._normalised(rows).double() - self.mean.double() for rows in blocks)
        values, vectors = _directions(centred, self.matrix.shape[1], rows=len(clean), width=len(self.mean))
        largest = vectors.gather(0, vectors.abs().argmax(0, keepdim=True))
        spread = values.mean().clamp(min=1e-12).sqrt()
        self.matrix.copy_(vectors * largest.sign() / spread)


def _directions(blocks: Iterable[Tensor], count: int, *, rows: int, width: int) -> tuple[Tensor, Tensor]:
    """The largest variances (k,) of centred rows, and their directions (D, k).

    Of fewer rows than features they come from the rows' products with each other: fewer numbers, the same answer. A
    direction in which nothing varies is 0 there.

    Args:
        blocks: the rows in blocks, (n, D) each, double precision.
        count: k, at most the number of rows and of features.
        rows: of all blocks.
        width: D.
    """
    if rows >= width:
        covariance = torch.zeros(width, width, dtype=torch.float64)
        for block in blocks:
            covariance += block.T @ block / rows
        values, vectors = torch.linalg.eigh(covariance)
        return values[-count:].flip(0), vectors[:, -count:].flip(1)
    whole = torch.cat(list(blocks))
    values, mixed = torch.linalg.eigh(whole @ whole.T / rows)
    values, mixed = values[-count:].flip(0).clamp(min=0.0), mixed[:, -count:].flip(1)
    varies = values > 1e-10 * values[0].clamp(min=1e-30)
    lengths = torch.where(varies, (rows * values).sqrt(), 1.0)
    return values, torch.where(varies, whole.T @ mixed / lengths, 0.0)


def _root(values: Tensor) -> Tensor:
    """Signed square root."""
    return values.sign() * values.abs().sqrt()


def empty_space(kind: Kind, parts: Sequence[int], components: int) -> nn.Module:
    """A space whose buffers are still to be loaded.

    Args:
        kind: which space.
        parts: lengths of the parts that features are made of.
        components: how many.
    """
    if kind == "standard":
        width = sum(parts)
        return StandardSpace(torch.zeros(width), torch.zeros(width, components))
    return RootSpace(parts, components)
