"""A frozen encoder's features as points among which distances mean something.

Pooled activations have long tails: a few large ones decide every distance. Signed roots at unit length, in principal
components, put images of one class nearer to each other. Features of several layers are scaled one by one, so that the
widest does not drown the others.
"""

from collections.abc import Callable
from functools import partial
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from protocon.base.eigenvectors import largest_eigenvectors
from protocon.base.parts import Parts, columns, width
from protocon.networks.colours_count import column_weights

Kind = Literal["roots", "standard"]
FITTED_TOGETHER = 4096
"""Images whose features are held in double precision at a time, while means are taken."""
DIRECTIONS_FROM = 2048
"""Images, spread evenly, that the directions are learnt from: more find the same ones, in far more time."""


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

    Each part is signed roots at unit length, centred; those whose channels differ in scale are standardised first
    instead. Then it gets the length that it has in a point, and colours the weight that the images give them.

    Args:
        parts: what features consist of.
        components: k.
    """

    shift: Tensor
    """Per feature, (D,): of its normalised roots, or, where a part is standardised, of the features."""
    scale: Tensor
    """Per feature, (D,)."""
    mean: Tensor
    """Of all parts together, (D,)."""
    matrix: Tensor
    """From centred parts to components, (D, k)."""

    def __init__(self, parts: Parts, components: int) -> None:
        super().__init__()
        self.parts = parts
        features = width(parts)
        self.register_buffer("shift", torch.zeros(features))
        self.register_buffer("scale", torch.ones(features))
        self.register_buffer("mean", torch.zeros(features))
        self.register_buffer("matrix", torch.zeros(features, components))

    def forward(self, features: Tensor) -> Tensor:
        """Components of each row."""
        return (self._normalised(features) - self.mean) @ self.matrix

    def _normalised(self, features: Tensor) -> Tensor:
        done = []
        for place, part in columns(self.parts):
            if part.standardised:
                rooted = _root((features[..., place] - self.shift[place]) / self.scale[place])
            else:
                rooted = _directed(features, place) - self.shift[place]
            done.append(part.length * F.normalize(rooted, dim=-1))
        return torch.cat(done, dim=-1)

    @torch.no_grad()
    def fit(self, clean: Tensor) -> None:
        """Learn all buffers from clean features (N, D) of any precision.

        Sums are in double precision, and each component's largest entry is positive, so that the result does not
        depend on the order of sums.
        """

        def mean(of: Callable[[Tensor], Tensor]) -> Tensor:
            blocks = (clean[start : start + FITTED_TOGETHER].float() for start in range(0, len(clean), FITTED_TOGETHER))
            return torch.stack([of(rows).double().sum(0) for rows in blocks]).sum(0) / len(clean)

        centre = mean(lambda rows: rows)
        deviation = mean(lambda rows: (rows - centre).square()).sqrt().clamp(min=1e-6)
        for place, part in columns(self.parts):
            if part.standardised:
                self.shift[place], self.scale[place] = centre[place].float(), deviation[place].float()
            else:
                self.shift[place] = mean(partial(_directed, place=place)).float()
        some = torch.linspace(0, len(clean) - 1, min(len(clean), DIRECTIONS_FROM), dtype=torch.float64).long()
        rows = self._normalised(clean[some].float())
        # Of few images all are there already.
        self.mean.copy_(rows.double().mean(0) if len(rows) == len(clean) else mean(self._normalised))
        weights = torch.from_numpy(column_weights(rows.numpy(), self.parts)).double()
        centred = (rows.double() - self.mean.double()) * weights
        values, vectors = _directions(centred, self.matrix.shape[1])
        largest = vectors.gather(0, vectors.abs().argmax(0, keepdim=True))
        spread = values.mean().clamp(min=1e-12).sqrt()
        self.matrix.copy_(weights[:, None] * vectors * largest.sign() / spread)


def _directions(centred: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The largest variances (k,) of centred rows, and their directions (D, k).

    Of fewer rows than features they come from the rows' products with each other: fewer numbers, the same answer. A
    direction in which nothing varies is 0 there.

    Args:
        centred: the rows (n, D), double precision.
        count: k, at most the number of rows and of features.
    """
    rows, features = centred.shape
    if rows >= features:
        return _largest(centred.T @ centred / rows, count)
    values, mixed = _largest(centred @ centred.T / rows, count)
    values = values.clamp(min=0.0)
    varies = values > 1e-10 * values[0].clamp(min=1e-30)
    lengths = torch.where(varies, (rows * values).sqrt(), 1.0)
    return values, torch.where(varies, centred.T @ mixed / lengths, 0.0)


def _largest(symmetric: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The largest eigenvalues and their vectors, largest first."""
    values, vectors = largest_eigenvectors(symmetric.numpy(), count)
    return torch.from_numpy(values), torch.from_numpy(vectors)


def _directed(rows: Tensor, place: slice) -> Tensor:
    """Signed roots of some columns, at unit length."""
    return F.normalize(_root(rows[..., place]), dim=-1)


def _root(values: Tensor) -> Tensor:
    """Signed square root."""
    return values.sign() * values.abs().sqrt()


def empty_space(kind: Kind, parts: Parts, components: int) -> nn.Module:
    """A space whose buffers are still to be loaded.

    Args:
        kind: which space.
        parts: what features consist of.
        components: how many.
    """
    if kind == "standard":
        features = width(parts)
        return StandardSpace(torch.zeros(features), torch.zeros(features, components))
    return RootSpace(parts, components)
