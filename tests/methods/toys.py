# ruff: noqa: ARG002 (signatures are the base class's)
"""Small methods that need what none of the package's does: several networks and updates, crops, no labels, support.

They are written as a method of the package would be, but for their place: tests put them into the table for a while.
"""

import copy
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from protocon.base.distributed import gather_rows, gather_with_gradient, mean
from protocon.base.draws import normal
from protocon.core.losses import supervised_loss
from protocon.core.schedules import cosine_between
from protocon.methods import METHODS
from protocon.methods.base import Forward, Method, MethodConfig, Problem
from protocon.methods.needs import Crops, Momentum, Support
from protocon.types import Batch, Outputs, Progress, Step, Update


class TaughtConfig(MethodConfig):
    """Settings of the toy after Meta Pseudo Labels."""

    teacher_lr: float = 0.05
    """The teacher has an optimiser of its own."""


class Taught(Method):
    """After Meta Pseudo Labels (Pham et al., 2021): the teacher learns from what its labels did to the student.

    The student learns from the teacher's hard labels. Then the teacher's labels are reinforced by how much the
    student's loss on labelled images fell, and the teacher learns from these images too.
    """

    Config: ClassVar[type[MethodConfig]] = TaughtConfig
    main = "student"
    confidence: Tensor

    def __init__(self, config: TaughtConfig, problem: Problem) -> None:
        super().__init__(config, problem)
        self.config = config
        self.register_buffer("confidence", torch.zeros(()))

    def build_networks(self, network: nn.Module) -> dict[str, nn.Module]:
        """Two of a kind; the teacher's first weights are a little different."""
        teacher = copy.deepcopy(network)
        with torch.no_grad():
            for number, weight in enumerate(teacher.parameters()):
                keys = torch.tensor([self.problem.seed * 1_000 + number])
                weight.add_(0.01 * normal(keys, 0, weight.numel()).view_as(weight))
        return {"student": network, "teacher": teacher}

    def optim(self, network: str) -> dict[str, Any]:
        """A slower teacher, without momentum."""
        return {"lr": self.config.teacher_lr, "momentum": 0.0} if network == "teacher" else {}

    def updates(
        self, networks: Mapping[str, Forward], batch: Batch, progress: Progress
    ) -> Generator[Update, None, Step]:
        """First the student, then, with a look at what became of it, the teacher."""
        student, teacher = networks["student"], networks["teacher"]
        rows = len(batch.labelled)
        taught = teacher(torch.cat([batch.labelled, batch.weak]))
        own, weak = taught.rows(0, rows), taught.rows(rows, len(taught.logits))
        confidence, label = weak.logits.detach().softmax(-1).max(-1)

        before = self._labelled_loss(student, batch)
        loss = F.cross_entropy(student(batch.strong[0]).logits, label) * batch.share
        yield Update(loss, "student")
        gain = before - self._labelled_loss(student, batch)

        loss_t = F.cross_entropy(own.logits, batch.targets) * batch.labelled_share
        yield Update(loss_t + gain * F.cross_entropy(weak.logits, label) * batch.share, "teacher", max_norm=1.0)
        terms = {"loss_u": loss.detach(), "loss_t": loss_t.detach(), "gain": gain}
        rows_of = {"index": batch.index, "classifier": label, "refined": label, "confidence": confidence}
        return Step(None, terms, rows_of)

    @torch.no_grad()
    def _labelled_loss(self, student: Forward, batch: Batch) -> Tensor:
        """Of the whole batch, the same in every process."""
        return mean(supervised_loss(student(batch.labelled).logits, batch.targets) * batch.labelled_share)

    def commit(self, rows: dict[str, Tensor], progress: Progress) -> None:
        """Keep the running mean of the teacher's confidence."""
        self.confidence.lerp_(rows["confidence"].mean(), 0.1)


class WithPrototypes(nn.Module):
    """A network with a last layer of its own."""

    def __init__(self, backbone: nn.Module, prototypes: Tensor) -> None:
        super().__init__()
        self.backbone = backbone
        self.prototypes = nn.Parameter(prototypes)

    def forward(self, x: Tensor) -> Outputs:
        """Scores of the prototypes in place of classes."""
        embeddings = self.backbone(x).embeddings
        return Outputs(embeddings @ self.prototypes.to(embeddings.dtype).T, embeddings)


class Distilled(Method):
    """After DINO (Caron et al., 2021): small and large crops predict what a momentum copy says of the large ones."""

    uses_labels = False
    uses_projector = True
    weak_view = False
    strong_views = 0
    crops = (Crops("strong", 2, scale=(0.4, 1.0)), Crops("weak", 2, size=0.5, scale=(0.1, 0.4)))
    evaluated = "teacher"
    center: Tensor
    prototypes: ClassVar[int] = 9

    def __init__(self, config: MethodConfig, problem: Problem) -> None:
        super().__init__(config, problem)
        self.register_buffer("center", torch.zeros(self.prototypes))

    def build_networks(self, network: nn.Module) -> dict[str, nn.Module]:
        """Prototypes on top of the projector; nobody trains the classifier."""
        network.get_submodule("classifier").requires_grad_(False)
        keys = torch.arange(self.prototypes) + 1_000 * self.problem.seed
        drawn = F.normalize(normal(keys, 0, self.problem.projection_dim), dim=-1)
        return {"network": WithPrototypes(network, drawn.to(torch.get_default_dtype()))}

    def model(self, network: nn.Module) -> nn.Module:
        """What is left of it has no prototypes."""
        return network.get_submodule("backbone")

    def copies(self) -> dict[str, Momentum]:
        """The teacher, which slows down to a stop."""
        return {"teacher": Momentum(lambda progress: cosine_between(0.9, 1.0, progress), statistics="batch")}

    def teacher(self) -> str:
        """The copy."""
        return "teacher"

    def learning_rate(self, network: str, base: float, progress: Progress) -> float:
        """Warm-up, then a cosine to zero."""
        return cosine_between(base, 0.0, progress) * min(1.0, (1 + progress.step) / 5)

    def weight_decay(self, network: str, base: float, progress: Progress) -> float:
        """Grows."""
        return cosine_between(base, 10 * base, progress)

    def step(self, network: Forward, teacher: Forward, batch: Batch, progress: Progress) -> Step:
        """Cross-entropy of every crop with the teacher's opinion of every other large one."""
        large, small = batch.crops
        with torch.no_grad():
            taught = teacher(torch.cat(large)).logits
            targets = ((taught - self.center) / 0.05).softmax(-1).chunk(len(large))
        seen = [*network(torch.cat(large)).logits.chunk(2), *network(torch.cat(small)).logits.chunk(2)]
        pairs = [
            -(target * (logits / 0.1).log_softmax(-1)).sum(-1).mean()
            for one, target in enumerate(targets)
            for other, logits in enumerate(seen)
            if one != other
        ]
        loss = torch.stack(pairs).mean() * batch.share
        rows = {"index": batch.index, "taught": torch.stack(taught.chunk(2)).mean(0)}
        return Step(loss, {"loss": loss.detach()}, rows)

    def commit(self, rows: dict[str, Tensor], progress: Progress) -> None:
        """Move the centre."""
        self.center.lerp_(rows["taught"].mean(0), 0.1)


class Supported(Method):
    """After PAWS (Assran et al., 2021): a view's class by its nearest neighbours in a balanced support set."""

    uses_projector = True

    def support(self) -> Support | None:
        """More images than some classes have labels, so that images repeat with other views."""
        return Support(per_class=3, views=2)

    def step(self, network: Forward, teacher: Forward, batch: Batch, progress: Progress) -> Step:
        """The strong view's neighbours are of the class that the weak view's are."""
        assert batch.support is not None
        views = [batch.labelled, batch.weak, batch.strong[0], *batch.support.views]
        out = network(torch.cat(views))
        labelled, weak, strong, *support = torch.split(out.embeddings, [len(view) for view in views])
        targets = gather_rows({"targets": batch.support.targets})["targets"]
        known = F.one_hot(torch.cat([targets] * len(support)), self.problem.classes).to(weak.dtype)
        whole = torch.cat([gather_with_gradient(rows) for rows in support])

        def neighbours(rows: Tensor) -> Tensor:
            return (rows @ whole.T / 0.1).softmax(-1) @ known

        target = neighbours(weak).detach() ** 4
        target = target / target.sum(-1, keepdim=True)
        loss_u = -(target * neighbours(strong).clamp(min=1e-6).log()).sum(-1).mean() * batch.share
        logits = out.logits[: len(labelled)]
        loss_x = supervised_loss(logits, batch.targets) * batch.labelled_share + 0.0 * out.logits.sum()
        label = target.argmax(-1)
        rows = {"index": batch.index, "classifier": label, "refined": label}
        return Step(loss_x + loss_u, {"loss_x": loss_x.detach(), "loss_u": loss_u.detach()}, rows)


TOYS: dict[str, type[Method]] = {"taught": Taught, "distilled": Distilled, "supported": Supported}


@contextmanager
def registered() -> Iterator[None]:
    """The toys among the package's methods."""
    added = [name for name in TOYS if name not in METHODS]
    METHODS.update(TOYS)
    try:
        yield
    finally:
        for name in added:
            del METHODS[name]
