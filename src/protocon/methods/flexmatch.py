"""FlexMatch (Zhang et al., NeurIPS 2021): a class that is learnt slowly gets a lower threshold."""

from typing import ClassVar

import torch.nn.functional as F
from torch import Tensor

from protocon.core.losses import supervised_loss, unlabelled_loss
from protocon.core.thresholds import FlexibleThresholds
from protocon.methods.base import Forward, Method, MethodConfig, Problem, PseudoLabelConfig
from protocon.types import Batch, Progress, Step


class FlexMatchConfig(PseudoLabelConfig):
    """Defaults are the paper's."""

    warm_up: bool = True
    """Let samples without any confident prediction yet hold all thresholds down (Eq. 11)."""
    convex: bool = True
    """Map a class's learning status by x / (2 − x) (Eq. 12); else the threshold is linear in it (Eq. 7)."""


class FlexMatch(Method):
    """FixMatch with curriculum pseudo-labelling."""

    Config: ClassVar[type[MethodConfig]] = FlexMatchConfig

    def __init__(self, config: FlexMatchConfig, problem: Problem) -> None:
        super().__init__(config, problem)
        self.config = config
        self.thresholds = FlexibleThresholds(
            problem.unlabelled,
            classes=problem.classes,
            threshold=config.threshold,
            warm_up=config.warm_up,
            convex=config.convex,
        )

    def step(self, network: Forward, teacher: Forward, batch: Batch, progress: Progress) -> Step:  # noqa: ARG002
        """One iteration of the paper's Algorithm 1: thresholds come from earlier batches' records."""
        labelled, weak, (strong,) = self.forward_views(network, teacher, batch)
        probs = weak.logits.softmax(-1)
        confidence, label = probs.max(-1)
        reliable = confidence >= self.thresholds()[label]
        target = F.one_hot(label, probs.shape[1]).to(probs.dtype)

        loss_x = supervised_loss(labelled.logits, batch.targets) * batch.labelled_share
        loss_u = unlabelled_loss(strong.logits, target, reliable) * batch.share
        terms = {
            "loss_x": loss_x.detach(),
            "loss_u": loss_u.detach(),
            "retention": reliable.float().mean() * batch.share,
        }
        rows = {"index": batch.index, "confidence": confidence, "classifier": label, "refined": label}
        return Step(loss_x + self.config.lambda_u * loss_u, terms, rows)

    def commit(self, rows: dict[str, Tensor], progress: Progress) -> None:  # noqa: ARG002
        """Put predictions above the *fixed* threshold on record (Algorithm 1, lines 13-17)."""
        self.thresholds.update(rows["index"], label=rows["refined"], confidence=rows["confidence"])

    def end_epoch(self, progress: Progress) -> dict[str, float]:  # noqa: ARG002
        """The range of the thresholds, and the share of samples on record."""
        thresholds = self.thresholds()
        return {
            "lowest_threshold": float(thresholds.min()),
            "highest_threshold": float(thresholds.max()),
            "on_record": int(self.thresholds.counts.sum()) / self.problem.unlabelled,
        }
