"""SoftMatch (Chen et al., ICLR 2023): every pseudo-label counts, the less confident ones less."""

from typing import ClassVar

import torch.nn.functional as F
from pydantic import Field
from torch import Tensor

from protocon.core.alignment import DistributionAlignment
from protocon.core.losses import supervised_loss, unlabelled_loss
from protocon.core.weighting import ConfidenceGaussian
from protocon.methods.base import Forward, Method, MethodConfig, Problem
from protocon.types import Batch, Progress, Step


class SoftMatchConfig(MethodConfig):
    """Defaults are the paper's (its section 4.1 and table 6); there is no threshold to set."""

    lambda_u: float = Field(default=1.0, ge=0)
    """λ_max, the weight of a confident pseudo-label."""
    gaussian_width: float = Field(default=2.0, gt=0)
    """n_σ: the paper divides the variance by 4, the square of this."""
    gaussian_momentum: float = Field(default=0.999, ge=0, lt=1)
    """m of the running mean and variance of confidence, and of the running mean of predictions."""
    uniform_alignment: bool = True
    """Weigh by the confidence after alignment to uniform classes (Eq. 8-9); False is the paper's ablation."""


class SoftMatch(Method):
    """FixMatch with a truncated Gaussian of confidence in place of the threshold."""

    Config: ClassVar[type[MethodConfig]] = SoftMatchConfig

    def __init__(self, config: SoftMatchConfig, problem: Problem) -> None:
        super().__init__(config, problem)
        self.config = config
        self.gaussian = ConfidenceGaussian(
            problem.classes, momentum=config.gaussian_momentum, width=config.gaussian_width
        )
        self.alignment = DistributionAlignment(problem.classes, momentum=config.gaussian_momentum)

    def step(self, network: Forward, teacher: Forward, batch: Batch, progress: Progress) -> Step:  # noqa: ARG002
        """One iteration of the paper's Algorithm 1 (Eq. 1, 2, 9).

        Alignment changes the weight and never the label. The algorithm takes this batch into the running
        means first; here they are read as the batches before left them.
        """
        labelled, weak, (strong,) = self.forward_views(network, teacher, batch)
        probs = weak.logits.softmax(-1)
        confidence, label = probs.max(-1)
        aligned = self.alignment(probs).max(-1).values if self.config.uniform_alignment else confidence
        weight = self.gaussian(aligned)
        target = F.one_hot(label, probs.shape[1]).to(probs.dtype)

        loss_x = supervised_loss(labelled.logits, batch.targets) * batch.labelled_share
        loss_u = unlabelled_loss(strong.logits, target, weight) * batch.share
        terms = {
            "loss_x": loss_x.detach(),
            "loss_u": loss_u.detach(),
            "retention": weight.float().mean() * batch.share,
        }
        rows = {"index": batch.index, "probs": probs, "classifier": label, "refined": label}
        return Step(loss_x + self.config.lambda_u * loss_u, terms, rows)

    def commit(self, rows: dict[str, Tensor], progress: Progress) -> None:  # noqa: ARG002
        """Keep the running means: of confidence before alignment, as Algorithm 1 says (Eq. 6-8)."""
        self.gaussian.update(rows["probs"].max(-1).values)
        self.alignment.update(rows["probs"])

    def end_epoch(self, progress: Progress) -> dict[str, float]:  # noqa: ARG002
        """Mean and standard deviation of confidence."""
        return {
            "confidence_mean": float(self.gaussian.mean),
            "confidence_std": float(self.gaussian.variance.sqrt()),
        }
