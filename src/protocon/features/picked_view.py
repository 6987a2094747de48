"""Views of a sample whose views are cached already: draw one of them, and perturb its features."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from protocon.augment.features import FeatureDraws, FeatureView
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
        rows = torch.arange(len(samples), device=samples.device)
        return self.draw(keys, samples.shape[2]).apply(samples, rows)

    def draw(self, keys: Tensor, width: int) -> "PickedDraws":
        """What is drawn for rows with these keys, (n,), of so many features each."""
        choices = torch.tensor(self.columns, device=keys.device)
        chosen = choices[integers(keys, Slot.CACHED_VIEW, len(self.columns))[:, 0]]
        return PickedDraws(chosen, self.perturb.draw(keys, width))


@dataclass(frozen=True, eq=False)
class PickedDraws:
    """Which view each of some rows shows, and what perturbs it."""

    chosen: Tensor
    """int64 (n,)."""
    perturb: FeatureDraws

    def apply(self, samples: Tensor, rows: Tensor) -> Tensor:
        """Perturbed features (…, n, D) of the samples (N, V, D) at these positions (…, n)."""
        places = rows * samples.shape[1] + self.chosen
        # A copy; whole rows are taken three times as fast as places in rows and columns.
        picked = samples.flatten(0, 1).index_select(0, places.flatten()).view(*places.shape, samples.shape[2])
        return self.perturb.apply_(picked.float())

    def rows(self, part: slice | Tensor) -> "PickedDraws":
        """The draws of some of the rows."""
        return PickedDraws(self.chosen[part], self.perturb.rows(part))

    @staticmethod
    def joined(parts: Sequence["PickedDraws"]) -> "PickedDraws":
        """The draws of several lists of rows, one after the other."""
        first = parts[0].perturb
        noise = [part.perturb.noise for part in parts if part.perturb.noise is not None]
        kept = [part.perturb.kept for part in parts if part.perturb.kept is not None]
        perturb = FeatureDraws(
            torch.cat(noise) if noise else None, first.spread, torch.cat(kept) if kept else None, first.dropout
        )
        return PickedDraws(torch.cat([part.chosen for part in parts]), perturb)


def clean_view(samples: Tensor) -> Tensor:
    """The clean view's features, (n, D) float32: it is always the first."""
    return samples[:, 0].float()
