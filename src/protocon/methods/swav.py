"""SwAV (Caron et al., NeurIPS 2020): a view's code, spread evenly over prototypes, is predicted from other views.

Equation numbers are those of arXiv:2006.09882v5; Algorithm 1 is that of its appendix.
"""

from collections.abc import Generator, Mapping
from typing import ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn

from protocon.base.distributed import rank, world_size
from protocon.core.queue import EmbeddingQueue
from protocon.core.sinkhorn import sinkhorn
from protocon.methods.base import Forward, MethodConfig, Problem
from protocon.methods.multicrop import MultiCrop, MultiCropConfig, head_of
from protocon.networks.prototype_head import PrototypeHead, drawn_prototypes
from protocon.types import Batch, Progress, Step, Update


class SwAVConfig(MultiCropConfig):
    """Defaults are for small images; ImageNet's are in the recipe `imagenet-swav`."""

    temperature: float = Field(default=0.1, gt=0)
    """τ of the predictions (Eq. 2)."""
    epsilon: float = Field(default=0.05, gt=0)
    """ε of the codes: the smaller, the harder (Eq. 3)."""
    sinkhorn_rounds: int = Field(default=3, ge=1)
    """Rounds of Sinkhorn and Knopp's iteration."""
    fixed_steps: int = Field(default=0, ge=0)
    """Steps in which the prototypes stay as they were drawn (313 for ImageNet in batches of 4,096)."""
    queue_size: int = Field(default=0, ge=0)
    """Earlier projections of each large crop that codes are computed with, where batches are small (3,840 for ImageNet
    in batches of 256); 0 for none."""
    queue_from_epoch: int = Field(default=15, ge=0)
    """Epoch from which that queue is used."""


class SwAV(MultiCrop):
    """Codes of the two large crops, predicted from every other crop."""

    Config: ClassVar[type[MethodConfig]] = SwAVConfig
    config: SwAVConfig
    _head: PrototypeHead

    def __init__(self, config: SwAVConfig, problem: Problem) -> None:
        super().__init__(config, problem)
        sizes = [config.queue_size] * 2 if config.queue_size else []
        self.queues = nn.ModuleList(EmbeddingQueue(size, dim=problem.projection_dim) for size in sizes)

    def build_networks(self, network: nn.Module) -> dict[str, nn.Module]:
        """Prototypes on the sphere, on top of the projector."""
        super().build_networks(network)
        drawn = drawn_prototypes(self.config.prototypes, self.problem.projection_dim, seed=self.problem.seed)
        head = PrototypeHead(network, drawn, weight_norm=False)
        object.__setattr__(self, "_head", head)  # to score the queue with; not a part of the method's state
        return {"network": head}

    def constrain(self, name: str, network: nn.Module) -> None:  # noqa: ARG002
        """Prototypes stay on the sphere."""
        head_of(network).to_unit_length()

    def updates(
        self, networks: Mapping[str, Forward], batch: Batch, progress: Progress
    ) -> Generator[Update, None, Step]:
        """One update; prototypes take part in it once they are no longer fixed."""
        step = self.step(networks["network"], networks["network"], batch, progress)
        assert step.loss is not None
        fixed = ("prototypes",) if progress.step < self.config.fixed_steps else ()
        yield Update(step.loss, fixed=fixed)
        return step

    def step(self, network: Forward, teacher: Forward, batch: Batch, progress: Progress) -> Step:  # noqa: ARG002
        """Algorithm 1: each large crop's code is what all other crops should say (Eq. 1-3)."""
        seen = self.forward_crops(network, batch)
        codes = [self.codes(view.logits.detach(), number, progress) for number, view in enumerate(seen[:2])]
        logs = [(view.logits / self.config.temperature).log_softmax(-1) for view in seen]
        pairs = [
            -(code * log).sum(-1).mean()
            for number, code in enumerate(codes)
            for other, log in enumerate(logs)
            if other != number
        ]
        loss = torch.stack(pairs).mean() * batch.share
        rows = self.seen(seen[0].embeddings, batch) | self.targets_seen(torch.stack(codes), batch)
        queued = {f"embeddings_{number}": seen[number].embeddings.detach() for number in range(len(self.queues))}
        return Step(loss, {"loss": loss.detach()}, rows | queued)

    def codes(self, scores: Tensor, number: int, progress: Progress) -> Tensor:
        """Codes of this process's rows (n, K) of a large crop, computed together with the queue of that crop.

        Args:
            scores: (n, K).
            number: 0 or 1.
            progress: the queue is used from some epoch on, and once it is full.
        """
        if self.queues and progress.epoch >= self.config.queue_from_epoch:
            queue: EmbeddingQueue = self.queues[number]  # type: ignore[assignment]
            if int(queue.received) >= self.config.queue_size:
                share = queue.embeddings[rank() :: world_size()].to(scores.dtype)  # each row once over all processes
                earlier = self._head.scores(share).detach()
                together = torch.cat([earlier, scores])
                return self._spread(together)[len(earlier) :]
        return self._spread(scores)

    def _spread(self, scores: Tensor) -> Tensor:
        return sinkhorn(scores, epsilon=self.config.epsilon, rounds=self.config.sinkhorn_rounds)

    def commit(self, rows: dict[str, Tensor], progress: Progress) -> None:
        """Keep means, and the large crops' projections in their queues."""
        super().commit(rows, progress)
        for number, queue in enumerate(self.queues):
            assert isinstance(queue, EmbeddingQueue)
            queue.add(rows[f"embeddings_{number}"])
