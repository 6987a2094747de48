"""SimMatch (Zheng et al., CVPR 2022): similarity to labelled images and to classes must agree.

A weak view is compared with every labelled image. These similarities, summed by class, refine its
pseudo-label; the pseudo-label, unfolded over the labelled images, refines the similarities; both train
the strong view. Equation numbers are those of arXiv:2203.06915v2.
"""

from typing import ClassVar

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor

from protocon.core.labelled_bank import LabelledBank, aggregate, calibrate
from protocon.core.losses import supervised_loss, unlabelled_loss
from protocon.methods.base import Forward, MethodConfig, Problem
from protocon.methods.fixmatch import FixMatchDA, FixMatchDAConfig, ResolvedFixMatchDA
from protocon.methods.needs import Facts
from protocon.types import Batch, Outputs, Progress, Step


class SimMatchConfig(FixMatchDAConfig):
    """Defaults are the paper's for CIFAR (its section 4.1)."""

    soft_labels: bool = True
    """Use the refined distribution itself as the target, as the paper does; or else its largest entry."""
    alpha: float = Field(default=0.9, ge=0, le=1)
    """Weight of the classifier's opinion against the labelled images' (Eq. 10)."""
    temperature: float = Field(default=0.1, gt=0)
    """t of similarities to labelled images, for weak and strong views (Eq. 3-4)."""
    bank_momentum: float = Field(default=0.7, ge=0, lt=1)
    """Share of a labelled image's embedding that an update keeps (Eq. 12); the paper's ImageNet setting
    is 0 with `teacher: eman` (Eq. 11)."""
    lambda_in: float = Field(default=1.0, ge=0)
    """Weight of the instance consistency loss (5 for ImageNet)."""

    def settled(self, facts: Facts, reasons: dict[str, str]) -> "ResolvedSimMatch":
        """Class frequencies."""
        return ResolvedSimMatch.of(self.with_prior(facts, reasons))


class ResolvedSimMatch(ResolvedFixMatchDA, SimMatchConfig):
    """The same without `auto`."""


class SimMatch(FixMatchDA):
    """FixMatch with alignment, and labels that pass between classes and labelled instances."""

    Config: ClassVar[type[MethodConfig]] = SimMatchConfig
    uses_projector = True
    config: ResolvedSimMatch

    def __init__(self, config: ResolvedSimMatch, problem: Problem) -> None:
        super().__init__(config, problem)
        self.bank = LabelledBank(problem.labelled_targets, dim=problem.projection_dim, momentum=config.bank_momentum)

    def step(self, network: Forward, teacher: Forward, batch: Batch, progress: Progress) -> Step:  # noqa: ARG002
        """One iteration of the paper's Algorithm 1, with the bank as it stood before this batch.

        Until the bank has seen every labelled image it is silent: this is FixMatch with alignment.
        """
        labelled, weak, (strong,) = self.forward_views(network, teacher, batch)
        probs = weak.logits.softmax(-1)
        aligned = self.align(probs)
        similarity = self.bank.logits(weak.embeddings, temperature=self.config.temperature).softmax(-1)
        pseudo = self._refine(aligned, similarity)
        confidence, label = pseudo.max(-1)
        reliable = confidence >= self.config.threshold
        target = pseudo if self.config.soft_labels else F.one_hot(label, pseudo.shape[1]).to(pseudo.dtype)

        loss_x = supervised_loss(labelled.logits, batch.targets) * batch.labelled_share
        loss_u = unlabelled_loss(strong.logits, target, reliable) * batch.share
        loss_in = self._instance_consistency(strong, aligned, similarity) * batch.share
        loss = loss_x + self.config.lambda_u * loss_u + self.config.lambda_in * loss_in
        terms = {
            "loss_x": loss_x.detach(),
            "loss_u": loss_u.detach(),
            "loss_in": loss_in.detach(),
            "retention": reliable.float().mean() * batch.share,
        }
        rows = {
            "index": batch.index,
            "probs": probs,
            "classifier": probs.argmax(-1),
            "refined": label,
            "labelled_index": batch.labelled_index,
            "labelled_embeddings": self.judge_labelled(teacher, batch, labelled).embeddings,
        }
        return Step(loss, terms, rows)

    def _refine(self, aligned: Tensor, similarity: Tensor) -> Tensor:
        """p̂ = α·p + (1 − α)·q^agg (Eq. 9-10)."""
        instances = aggregate(similarity, self.bank.labels, classes=self.problem.classes)
        mixed = self.config.alpha * aligned + (1.0 - self.config.alpha) * instances
        return torch.where(self.bank.ready(), mixed, aligned)

    def _instance_consistency(self, strong: Outputs, aligned: Tensor, similarity: Tensor) -> Tensor:
        """L_in: the strong view is as similar to labelled images as q̂ says, all rows (Eq. 5, 7-8)."""
        target = calibrate(similarity, aligned, self.bank.labels)
        source = self.bank.logits(strong.embeddings, temperature=self.config.temperature).log_softmax(-1)
        return -(target * source).sum(-1).mean() * self.bank.ready()

    def commit(self, rows: dict[str, Tensor], progress: Progress) -> None:
        """Keep the running mean of predictions and the labelled images' embeddings."""
        super().commit(rows, progress)
        self.bank.update(rows["labelled_index"], rows["labelled_embeddings"])

    def summary(self) -> dict[str, int | float]:
        """Size of the bank."""
        return {"bank_size": len(self.bank.labels), "bank_bytes": self.bank.bytes()}
