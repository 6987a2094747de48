"""DebiasPL on FixMatch, FixMatch+DB (Wang et al., CVPR 2022): pseudo-labels without a class bias.

Logits of the weak view lose what a class is predicted by on average; the loss on the strong view asks
for a larger margin where a class is predicted rarely.
"""

from typing import ClassVar

import torch.nn.functional as F
from pydantic import Field
from torch import Tensor

from protocon.core.debias import LogitDebias
from protocon.core.losses import supervised_loss, unlabelled_loss
from protocon.methods.base import Forward, Method, MethodConfig, Problem, PseudoLabelConfig
from protocon.types import Batch, Progress, Step


class DebiasPLConfig(PseudoLabelConfig):
    """Defaults are the paper's."""

    debias: float = Field(default=0.5, ge=0)
    """λ, strength of both corrections (0.4 in the authors' ImageNet scripts, with τ = 0.8); 0 is FixMatch."""
    debias_momentum: float = Field(default=0.999, ge=0, lt=1)
    """m of the running mean prediction of each class."""


class DebiasPL(Method):
    """FixMatch with counterfactual debiasing and the adaptive marginal loss."""

    Config: ClassVar[type[MethodConfig]] = DebiasPLConfig

    def __init__(self, config: DebiasPLConfig, problem: Problem) -> None:
        super().__init__(config, problem)
        self.config = config
        self.debias = LogitDebias(problem.classes, strength=config.debias, momentum=config.debias_momentum)

    def step(self, network: Forward, teacher: Forward, batch: Batch, progress: Progress) -> Step:  # noqa: ARG002
        """One iteration of the paper's Algorithm 1, with the running mean as it stood before this batch."""
        labelled, weak, (strong,) = self.forward_views(network, teacher, batch)
        pseudo = self.debias(weak.logits).softmax(-1)
        confidence, label = pseudo.max(-1)
        reliable = confidence >= self.config.threshold
        target = F.one_hot(label, pseudo.shape[1]).to(pseudo.dtype)

        loss_x = supervised_loss(labelled.logits, batch.targets) * batch.labelled_share
        loss_u = unlabelled_loss(self.debias.margin(strong.logits), target, reliable) * batch.share
        probs = weak.logits.softmax(-1)
        terms = {
            "loss_x": loss_x.detach(),
            "loss_u": loss_u.detach(),
            "retention": reliable.float().mean() * batch.share,
        }
        rows = {"index": batch.index, "probs": probs, "classifier": probs.argmax(-1), "refined": label}
        return Step(loss_x + self.config.lambda_u * loss_u, terms, rows)

    def commit(self, rows: dict[str, Tensor], progress: Progress) -> None:  # noqa: ARG002
        """Keep the running mean of predictions (Eq. 4).

        Of those before the correction: the paper's Algorithm 1 prints the corrected ones, which its
        authors call a slip.
        """
        self.debias.update(rows["probs"])

    def opinions(self, probs: Tensor, index: Tensor) -> dict[str, Tensor]:  # noqa: ARG002
        """The classifier's opinion, plain and debiased."""
        return {"classifier": probs, "refined": self.debias(probs.clamp(min=1e-30).log()).softmax(-1)}
