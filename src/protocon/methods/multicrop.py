"""Crops of two sizes: what SwAV and DINO share."""

import math
from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor, nn

from protocon.core.spread import Usage
from protocon.methods.base import Forward, Problem
from protocon.methods.needs import Crops
from protocon.methods.pretraining import Pretraining, PretrainingConfig
from protocon.networks.prototype_head import PrototypeHead
from protocon.types import Batch, Outputs, Progress

Share = Annotated[float, Field(gt=0, le=1)]


class MultiCropConfig(PretrainingConfig):
    """Settings of methods that look at large and small crops of every image."""

    prototypes: int = Field(default=256, ge=2)
    """K (3,000 in SwAV, 65,536 in DINO, for ImageNet)."""
    small_crops: int = Field(default=4, ge=0)
    """Small crops per image, beside two large ones."""
    small_size: Annotated[int, Field(ge=1)] | Share = 0.43
    """Side of a small crop: in pixels, or as a share of the image's (96 of 224 for ImageNet)."""
    large_scale: tuple[Share, Share] = (0.14, 1.0)
    """Smallest and largest share of the image's area that a large crop shows."""
    small_scale: tuple[Share, Share] = (0.05, 0.14)
    """The same for small crops."""


class MultiCrop(Pretraining):
    """Two large crops and some small ones, and prototypes that are compared with all of them."""

    config: MultiCropConfig

    def __init__(self, config: MultiCropConfig, problem: Problem) -> None:
        super().__init__(config, problem)
        self.crops = (Crops("strong", 2, scale=config.large_scale),)
        if config.small_crops:
            small = Crops("strong", config.small_crops, size=config.small_size, scale=config.small_scale)
            self.crops = (*self.crops, small)
        self.usage = Usage(config.prototypes)

    def model(self, network: nn.Module) -> nn.Module:
        """What is left has no prototypes."""
        return network.get_submodule("backbone")

    def forward_crops(self, network: Forward, batch: Batch) -> list[Outputs]:
        """Outputs of each crop, the two large ones first. Crops of two sizes can't be one batch."""
        seen: list[Outputs] = []
        for views in batch.crops:
            out, rows = network(torch.cat(views)), len(batch.index)
            seen += [out.rows(n * rows, (n + 1) * rows) for n in range(len(views))]
        return seen

    def targets_seen(self, targets: Tensor, batch: Batch) -> dict[str, Tensor]:
        """Rows for `commit`: this process's part of the mean target (K,) of one or more views (…, n, K)."""
        return {"mean_target": (targets.flatten(0, -2).mean(0) * batch.share)[None]}

    def commit(self, rows: dict[str, Tensor], progress: Progress) -> None:
        """Keep the mean embedding and the mean target."""
        super().commit(rows, progress)
        self.usage.add(rows["mean_target"])

    def end_epoch(self, progress: Progress) -> dict[str, float]:
        """The spread of the projections, and how evenly targets use the prototypes."""
        return super().end_epoch(progress) | {"prototypes_used": self.usage.close()}

    def summary(self) -> dict[str, int | float]:
        """Prototypes, and the loss of a network that tells no image from another."""
        return {"prototypes": self.config.prototypes, "chance_loss": math.log(self.config.prototypes)}


def head_of(network: nn.Module) -> PrototypeHead:
    """The network with its prototypes."""
    if not isinstance(network, PrototypeHead):
        raise TypeError(f"a network with prototypes is expected, {type(network).__name__} came")
    return network
