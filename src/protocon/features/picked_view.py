"""Views of a sample whose views are cached already: draw one of them, and perturb its features."""

from dataclasses import dataclass

import torch
from torch import Tensor

from protocon.augment.features import FeatureView
from protocon.augment.slots import Slot
from protocon.base.draws import integers
from protocon.errors import DataError


@dataclass(frozen=True)
class PickedView:
    """One of a sample's cached views, each as likely as any other, then noise and dropout.

    (n, V, D) of any precision → (n, D) float32; each row's draws are a pure function of its key.
    """

    columns: tuple[int, ...]
    """Which of the V views may be drawn."""
    perturb: FeatureView

    def __call__(self, samples: Tensor, keys: Tensor) -> Tensor:
        """Perturbed features of one view of each sample."""
        if samples.dim() != 3 or samples.shape[1] <= max(self.columns):
            raise DataError(
                f"samples of shape {tuple(samples.shape)} came; expected (n, V, D) with more than "
                f"{max(self.columns)} views"
            )
        choices = torch.tensor(self.columns, device=keys.device)
        chosen = choices[integers(keys, Slot.CACHED_VIEW, len(self.columns))[:, 0]]
        return self.perturb(samples[torch.arange(len(samples), device=samples.device), chosen].float(), keys)


def clean_view(samples: Tensor) -> Tensor:
    """The clean view's features, (n, D) float32: it is always the first."""
    return samples[:, 0].float()
