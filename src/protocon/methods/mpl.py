"""Meta Pseudo Labels (Pham et al., CVPR 2021): the teacher learns from what its labels did to the student.

Algorithm 1 and equation numbers are those of arXiv:2003.10580v4. The student takes a step on the teacher's hard
labels ŷ; the teacher's feedback is h = CE(student before, labelled) − CE(student after, labelled), and its loss has the
term h · CE(ŷ, teacher). If the label helped, h is positive and the teacher becomes surer of it. The sign follows from
the gradient of the expected loss after the step, E[CE after] over labels drawn from the teacher's prediction P:
∇E = E[CE_after · ∇log P(ŷ)] = E[(CE_after − CE_before) · ∇log P(ŷ)] = E[h · ∇CE(ŷ, P)].
"""

import copy
from collections.abc import Generator, Mapping
from typing import Any, ClassVar, Literal

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from protocon.base.distributed import mean
from protocon.base.draws import fold, normal, uniform
from protocon.core.schedules import warmup_cosine
from protocon.methods.base import Forward, Method, MethodConfig, Problem
from protocon.types import Batch, Outputs, Progress, Step, Update


class MPLConfig(MethodConfig):
    """Defaults are for short runs and few labels; the paper's for CIFAR-10 are in the recipe `cifar10-mpl`."""

    teacher_lr: float | None = Field(default=None, gt=0)
    """The teacher's learning rate; null for the student's."""
    labels: Literal["sampled", "argmax"] = "sampled"
    """The teacher's hard label: drawn from its prediction, as in Algorithm 1, or the likeliest. Its authors' code has
    soft labels, with which the gradient of the feedback is zero."""
    smoothing: float = Field(default=0.15, ge=0, lt=1)
    """Label smoothing of the labelled losses."""
    temperature: float = Field(default=0.7, gt=0)
    """UDA: temperature of the target that a weak view gives."""
    threshold: float = Field(default=0.6, ge=0, le=1)
    """UDA: weak views of at least this confidence teach."""
    lambda_u: float = Field(default=1.0, ge=0)
    """UDA: weight of the unlabelled loss at the end of its ramp (8 in the paper, with 4,000 labels)."""
    ramp: float = Field(default=1 / 60, ge=0, le=1)
    """Share of training over which that weight grows from 0 (5,000 of 300,000 steps)."""
    wait: float = Field(default=0.01, ge=0, lt=1)
    """Share of training in which the student waits for the teacher (3,000 of 300,000 steps)."""
    warmup: float = Field(default=0.0, ge=0, lt=1)
    """Share of training over which each learning rate grows to its full value; the student's begins after its wait
    (5,000 of 700,000 steps for ImageNet)."""
    dropout: float = Field(default=0.2, ge=0, lt=1)
    """Dropout before both classifiers."""
    clip: float | None = Field(default=1.0, gt=0)
    """Clip both gradients to this length; null for no clipping."""
    finetune: float = Field(default=0.05, ge=0, lt=1)
    """Share of training at the end in which the student learns from labelled images alone."""
    finetune_lr: float = Field(default=6e-4, gt=0)
    """Learning rate of that part, as a share of the full one (3e-5 of 0.05)."""


class DroppedLinear(nn.Linear):
    """A linear layer with dropout before it, whose weights have the names of one without.

    Args:
        layer: whose weights it takes over.
        dropout: share of features to drop in training.
    """

    def __init__(self, layer: nn.Linear, dropout: float) -> None:
        super().__init__(layer.in_features, layer.out_features)
        self.weight, self.bias = layer.weight, layer.bias
        self.dropout = dropout

    def forward(self, x: Tensor) -> Tensor:
        """Scores."""
        return super().forward(F.dropout(x, self.dropout, self.training))


class MPL(Method):
    """Two networks: the student is evaluated, the teacher is taught by it."""

    Config: ClassVar[type[MethodConfig]] = MPLConfig
    main = "student"

    def __init__(self, config: MPLConfig, problem: Problem) -> None:
        super().__init__(config, problem)
        self.config = config

    def build_networks(self, network: nn.Module) -> dict[str, nn.Module]:
        """Two of a kind; the teacher starts a little elsewhere."""
        teacher = copy.deepcopy(network)
        with torch.no_grad():
            for number, weight in enumerate(teacher.parameters()):
                key = torch.tensor([1_000 * self.problem.seed + number])
                weight.add_(0.01 * normal(key, 0, weight.numel()).view_as(weight))
        for one in (network, teacher):
            layer = one.get_submodule("classifier")
            assert isinstance(layer, nn.Linear)
            one.classifier = DroppedLinear(layer, self.config.dropout)
        return {"student": network, "teacher": teacher}

    def optim(self, network: str) -> dict[str, Any]:
        """The teacher may have a rate of its own."""
        own = self.config.teacher_lr
        return {"lr": own} if network == "teacher" and own is not None else {}

    def learning_rate(self, network: str, base: float, progress: Progress) -> float:
        """Half a cosine; the student's is zero while it waits, and low at the end, where it is fine-tuned."""
        done = progress.step / progress.total_steps - (self.config.wait if network == "student" else 0.0)
        if done < 0.0:
            return 0.0
        if self._finetunes(progress):
            return base * self.config.finetune_lr
        warm = 1.0 if done >= self.config.warmup else done / self.config.warmup
        return base * warm * warmup_cosine(progress, warmup_epochs=0.0)

    def _finetunes(self, progress: Progress) -> bool:
        return progress.step >= (1.0 - self.config.finetune) * progress.total_steps

    def updates(
        self, networks: Mapping[str, Forward], batch: Batch, progress: Progress
    ) -> Generator[Update, None, Step]:
        """Algorithm 1: the student learns from the teacher's labels, then the teacher from what became of it."""
        student, teacher = networks["student"], networks["teacher"]
        if self._finetunes(progress):
            return (yield from self._finetune(student, teacher, batch))
        labelled, weak, strong = self._taught(teacher, batch)
        label = self.hard_labels(strong.logits.detach(), batch, progress)

        before = self._labelled_loss(student, batch)
        loss = F.cross_entropy(student(batch.strong[0]).logits, label) * batch.share
        yield Update(loss, "student", max_norm=self.config.clip)
        feedback = before - self._labelled_loss(student, batch)

        loss_x = F.cross_entropy(labelled.logits, batch.targets, label_smoothing=self.config.smoothing)
        loss_x = loss_x * batch.labelled_share
        loss_u, reliable = self._consistency(weak, strong)
        loss_u = loss_u * batch.share
        loss_m = feedback * F.cross_entropy(strong.logits, label) * batch.share
        weight = self.config.lambda_u * self._ramped(progress)
        yield Update(loss_x + weight * loss_u + loss_m, "teacher", max_norm=self.config.clip)
        terms = {
            "loss_x": loss_x.detach(),
            "loss_u": loss_u.detach(),
            "loss_student": loss.detach(),
            "feedback": feedback,
            "retention": reliable * batch.share,
        }
        guess = weak.logits.argmax(-1)
        return Step(None, terms, {"index": batch.index, "classifier": guess, "refined": guess})

    def _finetune(self, student: Forward, teacher: Forward, batch: Batch) -> Generator[Update, None, Step]:
        """The last part: the student on labelled images; the teacher no longer learns."""
        loss = F.cross_entropy(student(batch.labelled).logits, batch.targets) * batch.labelled_share
        yield Update(loss, "student", max_norm=self.config.clip)
        with torch.no_grad():
            sure, guess = teacher(batch.weak).logits.softmax(-1).max(-1)
        zero = torch.zeros_like(loss.detach())
        reliable = (sure >= self.config.threshold).to(loss.dtype).mean() * batch.share
        terms = {"loss_x": loss.detach(), "loss_u": zero, "loss_student": zero, "feedback": zero, "retention": reliable}
        return Step(None, terms, {"index": batch.index, "classifier": guess, "refined": guess})

    def _taught(self, teacher: Forward, batch: Batch) -> tuple[Outputs, Outputs, Outputs]:
        """The teacher's outputs of labelled, weak and strong views, in one pass."""
        views = [batch.labelled, batch.weak, batch.strong[0]]
        out, first, second = teacher(torch.cat(views)), len(batch.labelled), len(batch.labelled) + len(batch.weak)
        return out.rows(0, first), out.rows(first, second), out.rows(second, len(out.logits))

    def hard_labels(self, logits: Tensor, batch: Batch, progress: Progress) -> Tensor:
        """ŷ of the strong views, (n,): a function of seed, image and step.

        Args:
            logits: the teacher's, (n, C).
            batch: says which images they are.
            progress: which step it is.
        """
        if self.config.labels == "argmax":
            return logits.argmax(-1)
        keys = fold(fold(fold(self.problem.seed, _LABELS), progress.step), batch.index)
        below = logits.double().softmax(-1).cumsum(-1)
        drawn = uniform(keys, 0).to(below.dtype)
        return (below < drawn).sum(-1).clamp(max=logits.shape[1] - 1)

    def _consistency(self, weak: Outputs, strong: Outputs) -> tuple[Tensor, Tensor]:
        """UDA: the strong view says what the sharpened weak one does, where that is sure; and how many are."""
        with torch.no_grad():
            target = (weak.logits / self.config.temperature).softmax(-1)
            reliable = (weak.logits.softmax(-1).amax(-1) >= self.config.threshold).to(target.dtype)
        each = -(target * strong.logits.log_softmax(-1)).sum(-1)
        return (each * reliable).mean(), reliable.mean()

    def _ramped(self, progress: Progress) -> float:
        steps = self.config.ramp * progress.total_steps
        return 1.0 if progress.step >= steps else progress.step / steps

    @torch.no_grad()
    def _labelled_loss(self, student: Forward, batch: Batch) -> Tensor:
        """The student's loss on the labelled images of the whole batch, the same in every process."""
        return mean(F.cross_entropy(student(batch.labelled).logits, batch.targets) * batch.labelled_share)


_LABELS = 7_301
"""What the draws of hard labels are for."""
