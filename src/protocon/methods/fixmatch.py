"""FixMatch (Sohn et al., 2020), plain and with distribution alignment (Berthelot et al., 2020)."""

from typing import ClassVar, Literal

import torch.nn.functional as F
from torch import Tensor

from protocon.core.losses import supervised_loss, unlabelled_loss
from protocon.methods.aligning import AlignmentSettings, ResolvedAlignment, build_alignment, estimate_prior
from protocon.methods.base import Forward, Method, MethodConfig, Problem, PseudoLabelConfig, Samples
from protocon.methods.needs import Facts
from protocon.types import Batch, Progress, Step


class FixMatchConfig(PseudoLabelConfig):
    """FixMatch's settings."""

    soft_labels: bool = False
    """Use the distribution itself as the target; FixMatch takes its largest entry."""


class FixMatch(Method):
    """The weak view's confident prediction is the strong view's label."""

    Config: ClassVar[type[MethodConfig]] = FixMatchConfig
    config: FixMatchConfig

    def __init__(self, config: FixMatchConfig, problem: Problem) -> None:
        super().__init__(config, problem)
        self.config = config

    def align(self, probs: Tensor) -> Tensor:
        """Plain FixMatch takes predictions as they are."""
        return probs

    def step(self, network: Forward, teacher: Forward, batch: Batch, progress: Progress) -> Step:  # noqa: ARG002
        """FixMatch's Eq. 3-4."""
        labelled, weak, (strong,) = self.forward_views(network, teacher, batch)
        probs = weak.logits.softmax(-1)
        pseudo = self.align(probs)
        confidence, label = pseudo.max(-1)
        reliable = confidence >= self.config.threshold
        target = pseudo if self.config.soft_labels else F.one_hot(label, pseudo.shape[1]).to(pseudo.dtype)

        loss_x = supervised_loss(labelled.logits, batch.targets) * batch.labelled_share
        loss_u = unlabelled_loss(strong.logits, target, reliable) * batch.share
        terms = {
            "loss_x": loss_x.detach(),
            "loss_u": loss_u.detach(),
            "retention": reliable.float().mean() * batch.share,
        }
        rows = {"index": batch.index, "probs": probs, "classifier": probs.argmax(-1), "refined": label}
        return Step(loss_x + self.config.lambda_u * loss_u, terms, rows)


class FixMatchDAConfig(AlignmentSettings, FixMatchConfig):
    """Settings of FixMatch with distribution alignment."""

    alignment: Literal["mean", "dual"] = "mean"
    """By the running mean of predictions, as published, or by a dual variable per class, as ProtoCon can."""

    def settled(self, facts: Facts, reasons: dict[str, str]) -> "ResolvedFixMatchDA":
        """Class frequencies."""
        return ResolvedFixMatchDA.of(self.with_prior(facts, reasons))


class ResolvedFixMatchDA(ResolvedAlignment, FixMatchDAConfig):
    """The same without `auto`."""


class FixMatchDA(FixMatch):
    """FixMatch whose predictions are aligned to the class prior before the threshold."""

    Config: ClassVar[type[MethodConfig]] = FixMatchDAConfig

    def __init__(self, config: ResolvedFixMatchDA, problem: Problem) -> None:
        super().__init__(config, problem)
        self.alignment = build_alignment(config, problem, kind=config.alignment)
        self.aligning = config

    def prepare(self, samples: Samples) -> None:
        """Estimate the class frequencies, where that is asked for."""
        estimate_prior(self.alignment, self.aligning, samples, self.problem)

    def estimated_prior(self) -> Tensor | None:
        """Class frequencies that predictions are aligned to, where they were estimated."""
        return self.alignment.prior if self.aligning.class_prior == "estimated" else None

    def align(self, probs: Tensor) -> Tensor:
        """Predictions as frequent, on average, as the classes are."""
        aligned: Tensor = self.alignment(probs)
        return aligned

    def commit(self, rows: dict[str, Tensor], progress: Progress) -> None:  # noqa: ARG002
        """Keep the running mean of predictions."""
        self.alignment.update(rows["probs"])

    def opinions(self, probs: Tensor, index: Tensor) -> dict[str, Tensor]:  # noqa: ARG002
        """The classifier's opinion, plain and aligned."""
        return {"classifier": probs, "refined": self.align(probs)}
