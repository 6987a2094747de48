"""Fine-tuning a pre-trained encoder with few labels, as the papers' tables do it; and SimCLR v2's distillation.

Encoder and classifier have learning rates of their own. `head_layers` keeps the first layers of SimCLR v2's head
(Chen et al., NeurIPS 2020, section 2). With `distil_from`, a finished run teaches on the unlabelled images (Eq. 2-3).
"""

from collections.abc import Generator, Mapping
from pathlib import Path
from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from protocon.core.losses import supervised_loss
from protocon.core.schedules import warmup_cosine
from protocon.methods.base import Forward, Method, MethodConfig, Problem
from protocon.types import Batch, Progress, Step, Update


class FinetuneConfig(MethodConfig):
    """Own rates, kept layers, distillation."""

    encoder_rate: float = Field(default=1.0, ge=0)
    """Factor on the learning rate of the encoder and of kept layers of the head; 0 leaves them as they are."""
    classifier_rate: float = Field(default=10.0, ge=0)
    """Factor on the learning rate of the classifier."""
    head_layers: int = Field(default=0, ge=0, le=2)
    """Hidden layers of the pre-training's head to keep below the classifier (1 in SimCLR v2)."""
    schedule: Literal["cosine", "steps", "constant"] = "cosine"
    """Half a cosine to zero; a fifth of the rate after 60 % and again after 80 % of training, as SwAV does; or
    constant."""
    warmup_epochs: float = Field(default=0.0, ge=0)
    """Epochs over which the rate grows to its full value, at most a tenth of the run."""
    distil_from: Path | None = None
    """Folder of a finished run that teaches on the unlabelled images."""
    distil_weight: float = Field(default=1.0, ge=0, le=1)
    """α: weight of that loss against the labels' (Eq. 3); 1 leaves the labels to the teacher, as in Eq. 2."""
    temperature: float = Field(default=1.0, gt=0)
    """τ of both predictions in that loss (1, and 0.1 for a network that teaches itself)."""


class Finetune(Method):
    """Cross-entropy on labelled images; where there is a teacher, with its predictions on the others."""

    Config: ClassVar[type[MethodConfig]] = FinetuneConfig
    strong_views = 0

    def __init__(self, config: FinetuneConfig, problem: Problem) -> None:
        super().__init__(config, problem)
        self.config = config
        self.weak_view = config.distil_from is not None

    def teachers(self) -> dict[str, Path]:
        """The run that teaches, if one is named."""
        return {} if self.config.distil_from is None else {"distilled": self.config.distil_from}

    def rates(self, network: str) -> dict[str, float]:  # noqa: ARG002
        """Factors on the learning rate by the first part of a weight's name."""
        config = self.config
        return {"encoder.": config.encoder_rate, "kept.": config.encoder_rate, "classifier.": config.classifier_rate}

    def learning_rate(self, network: str, base: float, progress: Progress) -> float:  # noqa: ARG002
        """As the schedule says."""
        if self.config.schedule == "cosine":
            return base * warmup_cosine(progress, warmup_epochs=self.config.warmup_epochs)
        done = progress.step / progress.total_steps
        passed = 0 if self.config.schedule == "constant" else (done >= 0.6) + (done >= 0.8)
        return base * 0.2**passed

    def updates(
        self, networks: Mapping[str, Forward], batch: Batch, progress: Progress
    ) -> Generator[Update, None, Step]:
        """One update on labels, and on what the teacher says."""
        step = self.step(networks["network"], networks.get("distilled", networks["network"]), batch, progress)
        if step.loss is not None:
            yield Update(step.loss)
        return step

    def step(self, network: Forward, teacher: Forward, batch: Batch, progress: Progress) -> Step:  # noqa: ARG002
        """(1 − α)·L_x + α·L_distil (Eq. 3); L_x alone without a teacher."""
        if self.config.distil_from is None:
            loss = supervised_loss(network(batch.labelled).logits, batch.targets) * batch.labelled_share
            return Step(loss, {"loss_x": loss.detach()})
        out = network(torch.cat([batch.labelled, batch.weak]))
        said, weak = torch.split(out.logits, [len(batch.labelled), len(batch.weak)])
        with torch.no_grad():
            taught = teacher(batch.weak).logits
        loss_x = supervised_loss(said, batch.targets) * batch.labelled_share
        loss_u = distillation_loss(weak, taught, temperature=self.config.temperature) * batch.share
        weight = self.config.distil_weight
        loss = (1.0 - weight) * loss_x + weight * loss_u
        guess = taught.argmax(-1)
        rows = {"index": batch.index, "classifier": guess, "refined": guess}
        return Step(loss, {"loss_x": loss_x.detach(), "loss_u": loss_u.detach()}, rows)


def distillation_loss(student: Tensor, teacher: Tensor, *, temperature: float) -> Tensor:
    """Cross-entropy of two predictions at one temperature (Eq. 2).

    Args:
        student: logits, (n, C).
        teacher: logits, (n, C); no gradient flows into them.
        temperature: τ of both.
    """
    target = (teacher.detach() / temperature).softmax(-1)
    return -(target * (student / temperature).log_softmax(-1)).sum(-1).mean()
