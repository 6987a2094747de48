"""Pseudo-Label (Lee, 2013): a confident prediction is the label of the very view that it was made on.

Lee takes all predictions and lets their weight grow; a threshold came later. This is the form that later
papers compare with (Sohn et al., 2020; Wang et al., 2022): a threshold *and* a growing weight.
"""

from typing import ClassVar

import torch
import torch.nn.functional as F
from pydantic import Field

from protocon.core.losses import supervised_loss, unlabelled_loss
from protocon.methods.base import Forward, Method, MethodConfig, Problem, PseudoLabelConfig
from protocon.types import Batch, Progress, Step


class PseudoLabelMethodConfig(PseudoLabelConfig):
    """Defaults are those of the USB benchmark (Wang et al., 2022): τ = 0.95, a ramp over 40 % of training."""

    ramp: float = Field(default=0.4, ge=0, le=1)
    """Share of training over which the unlabelled loss's weight grows from 0 (Lee's Eq. 16); 0 for none."""


class PseudoLabel(Method):
    """Learns from its own confident predictions on weak views; needs no strong ones."""

    Config: ClassVar[type[MethodConfig]] = PseudoLabelMethodConfig
    strong_views = 0

    def __init__(self, config: PseudoLabelMethodConfig, problem: Problem) -> None:
        super().__init__(config, problem)
        self.config = config

    def step(self, network: Forward, teacher: Forward, batch: Batch, progress: Progress) -> Step:
        """L_x + α(t)·L_u (Lee's Eq. 15). Labelled and weak views share one pass, whose gradient is needed."""
        out = network(torch.cat([batch.labelled, batch.weak]))
        labelled, weak = (
            out.rows(0, len(batch.labelled)),
            out.rows(len(batch.labelled), len(out.logits)),
        )
        if self.settings.teacher == "student":
            judged = weak.detach()
        else:
            with torch.no_grad():
                judged = teacher(batch.weak)
        confidence, label = judged.logits.softmax(-1).max(-1)
        reliable = confidence >= self.config.threshold
        target = F.one_hot(label, weak.logits.shape[1]).to(weak.logits.dtype)

        loss_x = supervised_loss(labelled.logits, batch.targets) * batch.labelled_share
        loss_u = unlabelled_loss(weak.logits, target, reliable) * batch.share
        terms = {
            "loss_x": loss_x.detach(),
            "loss_u": loss_u.detach(),
            "retention": reliable.float().mean() * batch.share,
        }
        rows = {"index": batch.index, "classifier": label, "refined": label}
        return Step(loss_x + self.config.lambda_u * self._ramp(progress) * loss_u, terms, rows)

    def _ramp(self, progress: Progress) -> float:
        """α(t): grows linearly from 0 to 1."""
        steps = self.config.ramp * progress.total_steps
        return min(1.0, progress.step / steps) if steps > 0 else 1.0
