"""SimCLR v2 (Chen et al., NeurIPS 2020): two views of an image find each other among those of the whole batch.

The head has three layers; fine-tuning keeps the first of them (`protocon train --method finetune`). Algorithm 1 and
Eq. 1 are those of the first paper, arXiv:2002.05709v3.
"""

from typing import ClassVar

import torch
from pydantic import Field

from protocon.base.distributed import gather_with_gradient
from protocon.core.losses import instance_discrimination_loss
from protocon.methods.base import Forward, MethodConfig, Problem
from protocon.methods.needs import Crops
from protocon.methods.pretraining import Pretraining, PretrainingConfig
from protocon.networks.projector import ProjectorShape
from protocon.types import Batch, Progress, Step


class SimCLRConfig(PretrainingConfig):
    """Defaults are the paper's for small images; ImageNet's are in the recipe `imagenet-simclr`."""

    temperature: float = Field(default=0.5, gt=0)
    """τ of the similarities (0.1 for ImageNet)."""
    crop_scale: float = Field(default=0.08, gt=0, le=1)
    """Smallest share of the image's area that a view shows."""


class SimCLR(Pretraining):
    """Normalised temperature-scaled cross-entropy (NT-Xent) over the global batch."""

    Config: ClassVar[type[MethodConfig]] = SimCLRConfig
    projector = ProjectorShape(layers=3, last_norm=True)
    config: SimCLRConfig

    def __init__(self, config: SimCLRConfig, problem: Problem) -> None:
        super().__init__(config, problem)
        self.crops = (Crops("strong", 2, scale=(config.crop_scale, 1.0)),)

    def step(self, network: Forward, teacher: Forward, batch: Batch, progress: Progress) -> Step:  # noqa: ARG002
        """Algorithm 1: 2n views in one pass, each with one partner and 2(n − 1) others."""
        ((first, second),) = batch.crops
        out = network(torch.cat([first, second]))
        one, other = (gather_with_gradient(half) for half in torch.split(out.embeddings, len(first)))
        loss = instance_discrimination_loss(one, other, temperature=self.config.temperature)
        return Step(loss, {"loss": loss.detach()}, self.seen(out.embeddings[: len(first)], batch))
