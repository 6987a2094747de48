"""CoMatch (Li, Xiong and Hoi, ICCV 2021): class probabilities and embeddings that teach each other.

Pseudo-labels are smoothed over a memory of similar weak views; the smoothed pseudo-labels say which
images' embeddings should be close. Equation numbers are those of arXiv:2011.11183v2.
"""

from typing import ClassVar

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor

from protocon.base.distributed import gather_rows, gather_with_gradient
from protocon.core.graph import graph_contrastive_loss, pseudo_label_graph
from protocon.core.losses import supervised_loss, unlabelled_loss
from protocon.core.queue import FeatureQueue
from protocon.methods.base import Forward, MethodConfig, Problem
from protocon.methods.fixmatch import FixMatchDA, FixMatchDAConfig, ResolvedFixMatchDA
from protocon.methods.needs import Facts
from protocon.types import Batch, Outputs, Progress, Step


class CoMatchConfig(FixMatchDAConfig):
    """Defaults are the paper's for CIFAR-10 (its table 5)."""

    soft_labels: bool = True
    """Use the smoothed distribution itself as the target, as the paper does; or else its largest entry."""
    alpha: float = Field(default=0.9, ge=0, le=1)
    """Weight of an image's own prediction against the memory's (Eq. 8)."""
    temperature: float = Field(default=0.2, gt=0)
    """t of similarities to the memory and between strong views (Eq. 7, 10)."""
    queue_size: int = Field(default=2560, ge=1)
    """K, weak views in the memory: five batches of 64 labelled and 448 unlabelled (30,000 for ImageNet)."""
    graph_threshold: float = Field(default=0.8, ge=0, le=1)
    """T: images whose pseudo-labels are at least this similar are joined (Eq. 9)."""
    lambda_ctr: float = Field(default=1.0, ge=0)
    """Weight of the graph contrastive loss (5 for STL-10, 10 for ImageNet with 1 % of labels)."""

    def settled(self, facts: Facts, reasons: dict[str, str]) -> "ResolvedCoMatch":
        """Class frequencies."""
        return ResolvedCoMatch.of(self.with_prior(facts, reasons))


class ResolvedCoMatch(ResolvedFixMatchDA, CoMatchConfig):
    """The same without `auto`."""


class CoMatch(FixMatchDA):
    """FixMatch with alignment, memory-smoothed soft pseudo-labels and contrasted graphs."""

    Config: ClassVar[type[MethodConfig]] = CoMatchConfig
    uses_projector = True
    strong_views = 2
    config: ResolvedCoMatch

    def __init__(self, config: ResolvedCoMatch, problem: Problem) -> None:
        super().__init__(config, problem)
        self.queue = FeatureQueue(config.queue_size, dim=problem.projection_dim, classes=problem.classes)

    def step(self, network: Forward, teacher: Forward, batch: Batch, progress: Progress) -> Step:  # noqa: ARG002
        """One iteration: align, smooth, and the three losses (Eq. 3-5).

        Alignment and memory are read as they stood before this batch.
        """
        labelled, weak, (strong, other) = self.forward_views(network, teacher, batch)
        probs = weak.logits.softmax(-1)
        aligned = self.align(probs)
        pseudo = self.queue.smooth(
            aligned, weak.embeddings, alpha=self.config.alpha, temperature=self.config.temperature
        )
        confidence, label = pseudo.max(-1)
        reliable = confidence >= self.config.threshold
        target = pseudo if self.config.soft_labels else F.one_hot(label, pseudo.shape[1]).to(pseudo.dtype)

        loss_x = supervised_loss(labelled.logits, batch.targets) * batch.labelled_share
        loss_u = unlabelled_loss(strong.logits, target, reliable) * batch.share
        loss_ctr = self._contrast(strong, other, pseudo)
        loss = loss_x + self.config.lambda_u * loss_u + self.config.lambda_ctr * loss_ctr
        terms = {
            "loss_x": loss_x.detach(),
            "loss_u": loss_u.detach(),
            "loss_ctr": loss_ctr.detach(),
            "retention": reliable.float().mean() * batch.share,
        }
        rows = {
            "index": batch.index,
            "probs": probs,
            "aligned": aligned,
            "embeddings": weak.embeddings,
            "classifier": probs.argmax(-1),
            "refined": label,
            "labelled_embeddings": self.judge_labelled(teacher, batch, labelled).embeddings,
            "labelled_targets": batch.targets,
        }
        return Step(loss, terms, rows)

    def _contrast(self, strong: Outputs, other: Outputs, pseudo: Tensor) -> Tensor:
        """L_ctr over the global batch, since its graphs join every image with every other (Eq. 9-11)."""
        graph = pseudo_label_graph(gather_rows({"pseudo": pseudo})["pseudo"], threshold=self.config.graph_threshold)
        return graph_contrastive_loss(
            gather_with_gradient(strong.embeddings),
            gather_with_gradient(other.embeddings),
            graph,
            temperature=self.config.temperature,
        )

    def commit(self, rows: dict[str, Tensor], progress: Progress) -> None:
        """Keep the running mean, and queue aligned predictions *before* smoothing, and true labels."""
        super().commit(rows, progress)
        truth = F.one_hot(rows["labelled_targets"], self.problem.classes).to(rows["aligned"].dtype)
        self.queue.add(
            torch.cat([rows["embeddings"], rows["labelled_embeddings"]]),
            torch.cat([rows["aligned"], truth]),
        )

    def summary(self) -> dict[str, int | float]:
        """Size of the memory."""
        return {"queue_size": self.config.queue_size, "bank_bytes": self.queue.bytes()}
