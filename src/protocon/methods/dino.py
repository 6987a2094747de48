"""DINO (Caron et al., ICCV 2021): every crop predicts what a centred, sharpened momentum teacher says of large ones.

Algorithm 1 and equation numbers are those of arXiv:2104.14294v2.
"""

from collections.abc import Generator, Mapping
from dataclasses import replace
from typing import Annotated, ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn

from protocon.core.centre import Centre
from protocon.core.schedules import cosine_between
from protocon.methods.base import Forward, MethodConfig, Problem
from protocon.methods.multicrop import MultiCrop, MultiCropConfig, Share
from protocon.methods.needs import Momentum
from protocon.networks.projector import ProjectorShape
from protocon.networks.prototype_head import PrototypeHead, drawn_prototypes
from protocon.types import Batch, Progress, Step, Update

Chance = Annotated[float, Field(ge=0, le=1)]


class DINOConfig(MultiCropConfig):
    """Defaults are for small images; ImageNet's are in the recipe `imagenet-dino`."""

    small_scale: tuple[Share, Share] = (0.05, 0.4)
    """Smallest and largest share of the image's area that a small crop shows."""
    student_temperature: float = Field(default=0.1, gt=0)
    """τ_s (Eq. 1)."""
    teacher_temperature: float = Field(default=0.04, gt=0)
    """τ_t: the lower, the sharper the teacher."""
    first_teacher_temperature: float = Field(default=0.04, gt=0)
    """τ_t at the first step."""
    teacher_warmup_epochs: float = Field(default=0.0, ge=0)
    """Epochs over which τ_t goes from its first to its final value."""
    centre_momentum: float = Field(default=0.9, ge=0, le=1)
    """m of the centre (Eq. 4); 1 is no centring, with which training collapses."""
    teacher_momentum: float = Field(default=0.996, ge=0, lt=1)
    """λ: share of the teacher's weights that the first step keeps; it grows to 1 along half a cosine."""
    final_weight_decay: float | None = Field(default=0.4, ge=0)
    """Weight decay at the last step, to which it grows along half a cosine; null leaves it as it is."""
    fixed_epochs: int = Field(default=1, ge=0)
    """Epochs in which the last layer stays as it was drawn."""
    large_blur: tuple[Chance, Chance] = (1.0, 0.1)
    """Probability that the first and the second large crop are blurred, where images are large enough for it."""
    solarise: Chance = 0.2
    """Probability that bright pixels of the second large crop are inverted."""
    max_norm: float | None = Field(default=3.0, gt=0)
    """Clip the gradient of each weight tensor to this length; null for no clipping."""


class DINO(MultiCrop):
    """Self-distillation without labels."""

    Config: ClassVar[type[MethodConfig]] = DINOConfig
    projector = ProjectorShape(layers=3, activation="gelu")
    evaluated = "teacher"
    config: DINOConfig

    def __init__(self, config: DINOConfig, problem: Problem) -> None:
        super().__init__(config, problem)
        large = replace(self.crops[0], blur=config.large_blur, solarise=(0.0, config.solarise))
        self.crops = (large, *self.crops[1:])
        self.centre = Centre(config.prototypes, momentum=config.centre_momentum)

    def build_networks(self, network: nn.Module) -> dict[str, nn.Module]:
        """A last layer with normalised weights, on top of the projector."""
        super().build_networks(network)
        drawn = drawn_prototypes(self.config.prototypes, self.problem.projection_dim, seed=self.problem.seed)
        return {"network": PrototypeHead(network, drawn, weight_norm=True)}

    def copies(self) -> dict[str, Momentum]:
        """The teacher, which slows down to a stop."""
        first = self.config.teacher_momentum
        return {"teacher": Momentum(lambda progress: cosine_between(first, 1.0, progress), statistics="batch")}

    def teacher(self) -> str:
        """The copy."""
        return "teacher"

    def weight_decay(self, network: str, base: float, progress: Progress) -> float:  # noqa: ARG002
        """Grows along half a cosine."""
        last = self.config.final_weight_decay
        return base if last is None else cosine_between(base, last, progress)

    def temperature(self, progress: Progress) -> float:
        """τ_t of the step that comes next."""
        config = self.config
        steps = config.teacher_warmup_epochs * progress.total_steps / progress.total_epochs
        done = 1.0 if progress.step >= steps else progress.step / steps
        return config.first_teacher_temperature + done * (config.teacher_temperature - config.first_teacher_temperature)

    def updates(
        self, networks: Mapping[str, Forward], batch: Batch, progress: Progress
    ) -> Generator[Update, None, Step]:
        """One update, clipped, without the last layer at first."""
        step = self.step(networks["network"], networks["teacher"], batch, progress)
        assert step.loss is not None
        fixed = ("prototypes",) if progress.epoch < self.config.fixed_epochs else ()
        yield Update(step.loss, max_norm_of_each=self.config.max_norm, fixed=fixed)
        return step

    def step(self, network: Forward, teacher: Forward, batch: Batch, progress: Progress) -> Step:
        """Algorithm 1: cross-entropy of every crop with the teacher's opinion of every other large one."""
        with torch.no_grad():
            taught = teacher(torch.cat(batch.crops[0])).logits
            targets = ((taught - self.centre.mean.to(taught.dtype)) / self.temperature(progress)).softmax(-1)
        seen = self.forward_crops(network, batch)
        logs = [(view.logits / self.config.student_temperature).log_softmax(-1) for view in seen]
        pairs = [
            -(target * log).sum(-1).mean()
            for number, target in enumerate(targets.chunk(2))
            for other, log in enumerate(logs)
            if other != number
        ]
        loss = torch.stack(pairs).mean() * batch.share
        terms = {"loss": loss.detach(), "target_entropy": torch.special.entr(targets).sum(-1).mean() * batch.share}
        rows = self.seen(seen[0].embeddings, batch) | self.targets_seen(targets, batch)
        return Step(loss, terms, rows | {"taught": (taught.mean(0) * batch.share)[None]})

    def commit(self, rows: dict[str, Tensor], progress: Progress) -> None:
        """Keep means, and move the centre (Eq. 4)."""
        super().commit(rows, progress)
        self.centre.update(rows["taught"])
