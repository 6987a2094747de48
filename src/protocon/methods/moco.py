"""MoCo v2 (Chen et al., 2020): a query finds its key in a queue of keys that a momentum encoder made.

Algorithm 1 and Eq. 1-2 are those of the first paper, arXiv:1911.05722v3.
"""

from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from protocon.base.distributed import gather_rows
from protocon.core.contrast import info_nce, key_leak, share_found
from protocon.core.queue import EmbeddingQueue
from protocon.methods.base import Forward, MethodConfig, Problem
from protocon.methods.needs import Crops, Momentum
from protocon.methods.pretraining import Pretraining, PretrainingConfig
from protocon.networks.projector import ProjectorShape
from protocon.types import Batch, Progress, Step

PROBES = 8
"""Steps of an epoch in which batch statistics are tried for what they give away."""
OWN_KEYS = 4
"""The queue holds the keys of one image in so many, at most."""
MIN_HALF = 2
"""Images that a normalisation needs at least."""


class MoCoConfig(PretrainingConfig):
    """Defaults are those for small images; ImageNet's are in the recipe `imagenet-moco`."""

    queue_size: int = Field(default=4096, ge=1)
    """K, keys in the queue (65,536 for ImageNet); at most a quarter of the images. A queue as long as an epoch holds
    each image's own earlier keys, as negatives."""
    momentum: float = Field(default=0.99, ge=0, lt=1)
    """m: share of the key encoder's weights that a step keeps (0.999 for ImageNet)."""
    temperature: float = Field(default=0.1, gt=0)
    """τ of the similarities (0.2 for ImageNet)."""
    key_norms: Literal["averaged", "batch"] = "averaged"
    """What normalises keys. Averaged statistics (EMAN) give no key away; those of a batch do, the smaller the more:
    with `batch`, take large batches (over all processes, `run.sync_batchnorm`)."""
    crop_scale: float = Field(default=0.2, gt=0, le=1)
    """Smallest share of the image's area that a view shows."""


class MoCo(Pretraining):
    """One view is the query, the other the key."""

    Config: ClassVar[type[MethodConfig]] = MoCoConfig
    projector = ProjectorShape(layers=2)
    config: MoCoConfig
    leak: Tensor

    def __init__(self, config: MoCoConfig, problem: Problem) -> None:
        super().__init__(config, problem)
        self.crops = (Crops("strong", 2, scale=(config.crop_scale, 1.0)),)
        size = min(config.queue_size, max(1, problem.unlabelled // OWN_KEYS))
        self.queue = EmbeddingQueue(size, dim=problem.projection_dim)
        self.register_buffer("leak", torch.zeros(2))  # sum and number of an epoch's probes

    def copies(self) -> dict[str, Momentum]:
        """The key encoder (Eq. 2)."""
        return {"keys": Momentum(lambda _: self.config.momentum, statistics=self.config.key_norms)}

    def teacher(self) -> str:
        """The key encoder."""
        return "keys"

    def step(self, network: Forward, teacher: Forward, batch: Batch, progress: Progress) -> Step:
        """Algorithm 1, with the queue as it stood before this batch."""
        ((first, second),) = batch.crops
        query = network(first).embeddings
        with torch.no_grad():
            key = teacher(second).embeddings
        negatives = self.queue.similarities(query)
        loss = info_nce(query, key, negatives, temperature=self.config.temperature) * batch.share
        terms = {"loss": loss.detach(), "found": share_found(query, key, negatives) * batch.share}
        rows = self.seen(query, batch) | {"keys": key}
        per_epoch = progress.total_steps // progress.total_epochs
        if self.config.key_norms == "batch" and progress.step % max(1, per_epoch // PROBES) == 0:
            rows |= self._keys_again(teacher, second, key, batch)
        return Step(loss, terms, rows)

    @torch.no_grad()
    def _keys_again(self, teacher: Forward, views: Tensor, key: Tensor, batch: Batch) -> dict[str, Tensor]:
        """Keys of about half of the images, by themselves: which half does not depend on the number of processes."""
        half = batch.index % 2 == 0
        if gather_rows({"half": half})["half"].sum() < MIN_HALF:
            return {}
        return {"half_keys": key[half], "keys_again": teacher(views[half]).embeddings}

    def commit(self, rows: dict[str, Tensor], progress: Progress) -> None:
        """Enqueue the keys; the oldest leave."""
        super().commit(rows, progress)
        self.queue.add(rows["keys"])
        if "keys_again" in rows:
            leak = key_leak(rows["half_keys"], rows["keys_again"])
            self.leak += torch.stack([leak, torch.ones_like(leak)]).to(self.leak.dtype)

    def end_epoch(self, progress: Progress) -> dict[str, float]:
        """The spread of the projections, and how much of a key its batch makes up."""
        row = super().end_epoch(progress)
        total, probes = self.leak.tolist()
        self.leak.zero_()
        return row | {"key_leak": total / probes} if probes else row

    def summary(self) -> dict[str, int | float]:
        """Size of the queue."""
        return {"queue_size": len(self.queue.embeddings), "bank_bytes": self.queue.bytes()}
