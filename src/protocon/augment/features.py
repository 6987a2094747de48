"""Views of embeddings, where images are already features of a frozen encoder: noise and dropout."""

from dataclasses import dataclass

import torch
from torch import Tensor

from protocon.augment.slots import Slot
from protocon.base.draws import normal, uniform
from protocon.errors import ConfigError, DataError


@dataclass(frozen=True, eq=False)
class FeatureView:
    """Gaussian noise in units of each feature's spread, then dropout with the rest scaled up to the same mean.

    (B, D) float32 -> (B, D) float32; each row's draws are a pure function of its key.
    """

    noise: float
    """Standard deviation of the noise, in units of `std`; 0 adds none."""
    dropout: float
    """Probability that a feature is set to 0; the others are divided by 1 - dropout."""
    std: Tensor | None = None
    """Standard deviation of each feature over the training set, (D,) or one for all; needed if there is noise."""

    def __post_init__(self) -> None:
        if self.noise < 0.0 or not 0.0 <= self.dropout < 1.0:
            raise ConfigError(
                f"A feature view takes noise >= 0 and dropout in [0, 1); got {self.noise} and {self.dropout}."
            )
        if self.noise > 0.0 and self.std is None:
            raise ConfigError("Noise is relative to each feature's standard deviation: pass it as std.")

    def __call__(self, features: Tensor, keys: Tensor) -> Tensor:
        """Perturbed features, (B, D) float32."""
        if features.dim() != 2 or features.dtype != torch.float32 or keys.shape != features.shape[:1]:
            raise DataError(
                f"A feature view takes float32 features (B, D) with one key each; got {features.dtype} of shape "
                f"{tuple(features.shape)} and keys of shape {tuple(keys.shape)}."
            )
        return self.draw(keys, features.shape[1]).apply(features)

    def draw(self, keys: Tensor, width: int) -> "FeatureDraws":
        """What is drawn for rows with these keys, (n,), of so many features each."""
        noise = spread = kept = None
        if self.noise > 0.0 and self.std is not None:
            spread = self.noise * self.std.to(device=keys.device, dtype=torch.float32)
            if spread.dim() and spread.shape != (width,):
                raise DataError(f"std has shape {tuple(spread.shape)}; expected ({width},), one per feature.")
            noise = normal(keys, Slot.FEATURE_NOISE, width)
        if self.dropout > 0.0:
            kept = uniform(keys, Slot.FEATURE_DROPOUT, width) >= self.dropout
        return FeatureDraws(noise, spread, kept, self.dropout)


@dataclass(frozen=True, eq=False)
class FeatureDraws:
    """Noise and dropout of some rows, to be applied to any features: several runs may share them."""

    noise: Tensor | None
    """Standard normal, (n, D); None: there is none."""
    spread: Tensor | None
    """What it is multiplied by, (D,) or one number."""
    kept: Tensor | None
    """Which features are not dropped, (n, D): flags, or ones and zeros."""
    dropout: float

    def apply(self, features: Tensor) -> Tensor:
        """Perturbed features, (…, n, D) float32."""
        return self.apply_(features.clone())

    def apply_(self, features: Tensor) -> Tensor:
        """The same in the place of the features."""
        if self.noise is not None and self.spread is not None:
            features.addcmul_(self.noise, self.spread)
        if self.kept is not None:
            features.mul_(self.kept).div_(1.0 - self.dropout)
        return features

    def rows(self, part: slice | Tensor) -> "FeatureDraws":
        """The draws of some of the rows."""
        noise, kept = (None if drawn is None else _taken(drawn, part) for drawn in (self.noise, self.kept))
        return FeatureDraws(noise, self.spread, kept, self.dropout)


def _taken(drawn: Tensor, part: slice | Tensor) -> Tensor:
    """Some of the rows (n, D); of positions (…, m), (…, m, D)."""
    if isinstance(part, slice):
        return drawn[part]
    return drawn.index_select(0, part.flatten()).view(*part.shape, drawn.shape[1])
