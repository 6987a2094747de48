"""PAWS (Assran et al., ICCV 2021): views agree on their class by soft nearest neighbours in a labelled support set.

Algorithm 1 and equation numbers are those of arXiv:2104.13963v3. The last part of a run is the fine-tuning stage:
encoder and classifier learn from the labelled images alone. Until then the classifier learns on features as they are,
so that there is something to evaluate; it has no influence on them.
"""

from collections.abc import Generator, Mapping
from typing import Annotated, ClassVar

import torch
from pydantic import Field
from torch import Tensor

from protocon.base.distributed import gather_rows, gather_with_gradient, world_size
from protocon.core.losses import supervised_loss
from protocon.core.schedules import warmup_cosine
from protocon.core.soft_neighbours import sharpen, smoothed_labels, soft_neighbours
from protocon.methods.base import Forward, Method, MethodConfig, Problem
from protocon.methods.needs import Crops, Support
from protocon.networks.projector import ProjectorShape
from protocon.types import Batch, Progress, Step, SupportSet, Update

Share = Annotated[float, Field(gt=0, le=1)]


class PAWSConfig(MethodConfig):
    """Defaults are for small images; ImageNet's are in the recipe `imagenet-paws`."""

    support_per_class: int = Field(default=16, ge=1)
    """Support images of each class per step; where there are fewer labels, images repeat with other views."""
    support_classes: int | None = Field(default=None, ge=1)
    """Classes of the support set, drawn anew in each step (960 for ImageNet); null for all."""
    support_views: int = Field(default=2, ge=1)
    """Views of each support image."""
    temperature: float = Field(default=0.1, gt=0)
    """τ of the similarities (Eq. 1)."""
    sharpening: float = Field(default=0.25, gt=0, le=1)
    """T of the targets."""
    smoothing: float = Field(default=0.1, ge=0, lt=1)
    """Label smoothing of the support set."""
    me_max: float = Field(default=1.0, ge=0)
    """Weight of the entropy of the mean prediction, which keeps predictions from being all of one class."""
    small_crops: int = Field(default=2, ge=0)
    """Small crops per image, beside two large ones (6 in the paper)."""
    small_size: Annotated[int, Field(ge=1)] | Share = 0.5625
    """Side of a small crop: in pixels, or as a share of the image's (18 of 32 for CIFAR-10, 96 of 224 for ImageNet)."""
    large_scale: tuple[Share, Share] = (0.75, 1.0)
    """Smallest and largest share of the image's area that a large crop or a view of the support set shows (0.75 for
    CIFAR-10, 0.14 for ImageNet)."""
    small_scale: tuple[Share, Share] = (0.3, 0.75)
    """The same for small crops (0.3 and 0.75 for CIFAR-10, 0.05 and 0.14 for ImageNet)."""
    colours: float = Field(default=0.5, ge=0)
    """Strength of SimCLR's colours in all crops and in the support set. RandAugment and cutout, which the strong views
    of other methods have, leave too little of an image whose target is such a view too."""
    warmup_epochs: float = Field(default=10.0, ge=0)
    """Epochs over which the learning rate grows to its full value, at most a tenth of the run."""
    first_lr: float = Field(default=0.25, ge=0, le=1)
    """Learning rate at the first step, as a share of the full one."""
    final_lr: float = Field(default=0.01, ge=0, le=1)
    """Learning rate before fine-tuning, as a share of the full one."""
    finetune: float = Field(default=0.2, ge=0, lt=1)
    """Share of training at the end that fine-tunes encoder and classifier on the labelled images."""
    finetune_lr: float = Field(default=0.1, gt=0)
    """Learning rate of that part, as a share of the full one."""


class PAWS(Method):
    """Predicting view assignments with support samples."""

    Config: ClassVar[type[MethodConfig]] = PAWSConfig
    uses_projector = True
    projector = ProjectorShape(layers=3)
    weak_view = True
    strong_views = 0

    def __init__(self, config: PAWSConfig, problem: Problem) -> None:
        super().__init__(config, problem)
        self.config = config
        self.crops = (Crops("coloured", 2, scale=config.large_scale, strength=config.colours),)
        if config.small_crops:
            size, scale = config.small_size, config.small_scale
            small = Crops("coloured", config.small_crops, size=size, scale=scale, strength=config.colours)
            self.crops = (*self.crops, small)

    def support(self) -> Support | None:
        """Some images of each class, drawn anew in each step."""
        config = self.config
        return Support(config.support_per_class, config.support_classes, config.support_views, cropped=True)

    def learning_rate(self, network: str, base: float, progress: Progress) -> float:  # noqa: ARG002
        """Warm-up and half a cosine, then the constant rate of fine-tuning."""
        config = self.config
        if self._finetunes(progress):
            return base * config.finetune_lr
        steps = max(1, round((1.0 - config.finetune) * progress.total_steps))
        epochs = max(1, round((1.0 - config.finetune) * progress.total_epochs))
        part = Progress(progress.epoch, progress.step, epochs, steps)
        return base * warmup_cosine(
            part, warmup_epochs=config.warmup_epochs, start=config.first_lr, end=config.final_lr
        )

    def _finetunes(self, progress: Progress) -> bool:
        return progress.step >= round((1.0 - self.config.finetune) * progress.total_steps)

    def updates(
        self, networks: Mapping[str, Forward], batch: Batch, progress: Progress
    ) -> Generator[Update, None, Step]:
        """Assignments and the classifier on top, each with its own update; at the end, fine-tuning."""
        network = networks["network"]
        with torch.no_grad():
            guess = networks[self.teacher()](batch.weak).logits.argmax(-1)
        rows = {"index": batch.index, "classifier": guess, "refined": guess}
        if self._finetunes(progress):
            out = network(batch.labelled)
            loss_x = supervised_loss(out.logits, batch.targets) * batch.labelled_share
            yield Update(loss_x + 0.0 * out.embeddings.sum(), fixed=("projector.",))
            zero = torch.zeros_like(loss_x.detach())
            return Step(None, {"loss_x": loss_x.detach(), "loss_u": zero, "me_max": zero}, rows)
        loss_u, me_max, probs = self.assignments(network, batch)
        yield Update(loss_u + self.config.me_max * me_max, fixed=("classifier.",))
        out = network(batch.labelled)
        loss_x = supervised_loss(out.logits, batch.targets) * batch.labelled_share
        yield Update(loss_x + 0.0 * out.embeddings.sum(), fixed=("encoder.", "projector."))
        terms = {"loss_x": loss_x.detach(), "loss_u": loss_u.detach(), "me_max": me_max.detach()}
        return Step(None, terms, rows | {"refined": probs.argmax(-1)})

    def assignments(self, network: Forward, batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
        """Algorithm 1: the loss, the negative entropy of the mean prediction, and predictions of the first crop."""
        assert batch.support is not None
        large, *small = batch.crops
        known = len(batch.support.views) * len(batch.support.targets)
        # One pass for the support set and the large crops: one normalisation for all that is compared.
        outs = [network(torch.cat([*batch.support.views, *large])), *(network(torch.cat(views)) for views in small)]
        support, labels = self._support(outs[0].embeddings[:known], batch.support)
        rows = torch.cat([outs[0].embeddings[known:], *(out.embeddings for out in outs[1:])])
        near = soft_neighbours(rows, support, labels, temperature=self.config.temperature)
        probs = torch.split(near, len(batch.index))
        with torch.no_grad():
            first, second = (sharpen(said, self.config.sharpening) for said in probs[:2])
            targets = [second, first, *[(first + second) / 2] * (len(probs) - 2)]
        each = [
            -(target * said.clamp(min=_TINY).log()).sum(-1).mean() for target, said in zip(targets, probs, strict=True)
        ]
        loss = torch.stack(each).mean() * batch.share
        own = torch.stack([sharpen(said, self.config.sharpening).mean(0) for said in probs]).mean(0) * batch.share
        mean = gather_with_gradient(own[None]).sum(0) / world_size()
        zero = sum(0.0 * out.logits.sum() for out in outs)  # every output takes part: DDP waits for all weights
        return loss + zero, (mean * mean.clamp(min=_TINY).log()).sum(), probs[0].detach()

    def _support(self, embeddings: Tensor, support: SupportSet) -> tuple[Tensor, Tensor]:
        """Embeddings and smoothed labels of the whole support set, from this process's rows of it."""
        parts = [gather_with_gradient(part) for part in torch.split(embeddings, len(support.targets))]
        targets = gather_rows({"targets": support.targets})["targets"]
        labels = smoothed_labels(targets, classes=self.problem.classes, smoothing=self.config.smoothing)
        return torch.cat(parts), labels.repeat(len(parts), 1)


_TINY = 1e-12
