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
        width = features.shape[1]
        view = features.clone()
        if self.noise > 0.0 and self.std is not None:
            spread = self.noise * self.std.to(device=features.device, dtype=torch.float32)
            if spread.dim() and spread.shape != (width,):
                raise DataError(f"std has shape {tuple(spread.shape)}; expected ({width},), one per feature.")
            view.addcmul_(normal(keys, Slot.FEATURE_NOISE, width), spread)
        if self.dropout > 0.0:
            kept = uniform(keys, Slot.FEATURE_DROPOUT, width) >= self.dropout
            view.mul_(kept).div_(1.0 - self.dropout)
        return view
