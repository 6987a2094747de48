"""FreeMatch (Wang et al., ICLR 2023): thresholds that the model's own confidence sets, and fairness."""

from typing import ClassVar

import torch.nn.functional as F
from pydantic import Field
from torch import Tensor

from protocon.base.distributed import gather_rows, gather_with_gradient
from protocon.core.fairness import fairness_loss
from protocon.core.losses import supervised_loss, unlabelled_loss
from protocon.core.thresholds import SelfAdaptiveThresholds
from protocon.methods.base import Forward, Method, MethodConfig, Problem
from protocon.types import Batch, Outputs, Progress, Step


class FreeMatchConfig(MethodConfig):
    """Defaults are the paper's (its table 5); there is no fixed threshold to set."""

    lambda_u: float = Field(default=1.0, ge=0)
    """w_u, weight of the unlabelled loss."""
    lambda_f: float = 0.05
    """w_f, weight of the fairness loss. The paper has 0.01 for CIFAR-10 with 10 labels, CIFAR-100 with 400,
    STL-10 with 40, SVHN and ImageNet, else 0.05; its later code 0.001. A negative weight turns round the
    sign of Eq. 11, which the paper's text would lead one to expect."""
    threshold_momentum: float = Field(default=0.999, ge=0, lt=1)
    """λ of the running means that the thresholds are made of."""


class FreeMatch(Method):
    """FixMatch with self-adaptive thresholds and self-adaptive fairness."""

    Config: ClassVar[type[MethodConfig]] = FreeMatchConfig

    def __init__(self, config: FreeMatchConfig, problem: Problem) -> None:
        super().__init__(config, problem)
        self.config = config
        self.thresholds = SelfAdaptiveThresholds(problem.classes, momentum=config.threshold_momentum)

    def step(self, network: Forward, teacher: Forward, batch: Batch, progress: Progress) -> Step:  # noqa: ARG002
        """One iteration of the paper's Algorithm 1 (Eq. 7-9, 11-12).

        The algorithm takes this batch into the running means first; here they are read as the batches
        before left them, which differs by a thousandth of one batch.
        """
        labelled, weak, (strong,) = self.forward_views(network, teacher, batch)
        probs = weak.logits.softmax(-1)
        confidence, label = probs.max(-1)
        reliable = confidence >= self.thresholds()[label]
        target = F.one_hot(label, probs.shape[1]).to(probs.dtype)

        loss_x = supervised_loss(labelled.logits, batch.targets) * batch.labelled_share
        loss_u = unlabelled_loss(strong.logits, target, reliable) * batch.share
        loss_f = self._fairness(strong, reliable)
        loss = loss_x + self.config.lambda_u * loss_u + self.config.lambda_f * loss_f
        terms = {
            "loss_x": loss_x.detach(),
            "loss_u": loss_u.detach(),
            "loss_f": loss_f.detach(),
            "retention": reliable.float().mean() * batch.share,
        }
        rows = {"index": batch.index, "probs": probs, "classifier": label, "refined": label}
        return Step(loss, terms, rows)

    def _fairness(self, strong: Outputs, reliable: Tensor) -> Tensor:
        """L_f over the global batch, since it compares means over the batch (Eq. 11)."""
        return fairness_loss(
            gather_with_gradient(strong.logits).softmax(-1),
            gather_rows({"reliable": reliable})["reliable"],
            marginal=self.thresholds.marginal,
            histogram=self.thresholds.histogram,
        )

    def commit(self, rows: dict[str, Tensor], progress: Progress) -> None:  # noqa: ARG002
        """Keep the running means (Eq. 5, 6, 10)."""
        self.thresholds.update(rows["probs"])

    def end_epoch(self, progress: Progress) -> dict[str, float]:  # noqa: ARG002
        """The global threshold and the lowest class threshold."""
        return {
            "global_threshold": float(self.thresholds.level),
            "lowest_threshold": float(self.thresholds().min()),
        }
