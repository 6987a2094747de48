"""What methods without labels have in common: views, schedule, and a look at how widely projections spread."""

from typing import ClassVar

from pydantic import Field
from torch import Tensor, nn

from protocon.core.schedules import warmup_cosine
from protocon.core.spread import Spread
from protocon.methods.base import Method, MethodConfig, Problem
from protocon.types import Batch, Progress


class PretrainingConfig(MethodConfig):
    """Settings of every pre-training."""

    warmup_epochs: float = Field(default=10.0, ge=0)
    """Epochs over which the learning rate grows to its full value, at most a tenth of the run; then it falls along half
    a cosine."""
    first_lr: float = Field(default=0.0, ge=0, le=1)
    """Learning rate at the first step, as a share of the full one."""
    final_lr: float = Field(default=0.0, ge=0, le=1)
    """Learning rate at the last step, as a share of the full one."""


class Pretraining(Method):
    """No labels and no weak view: random crops of every image, and an encoder at the end.

    A method writes `step`, puts `seen(embeddings, batch)` among its rows, and calls this class's `commit`.
    """

    Config: ClassVar[type[MethodConfig]] = PretrainingConfig
    uses_labels = False
    uses_projector = True
    weak_view = False
    strong_views = 0
    evaluated = "network"

    def __init__(self, config: PretrainingConfig, problem: Problem) -> None:
        super().__init__(config, problem)
        self.config = config
        self.spread = Spread(problem.projection_dim)

    def build_networks(self, network: nn.Module) -> dict[str, nn.Module]:
        """Nobody trains the classifier."""
        network.get_submodule("classifier").requires_grad_(False)
        return {self.main: network}

    def learning_rate(self, network: str, base: float, progress: Progress) -> float:  # noqa: ARG002
        """Warm-up, then half a cosine."""
        config = self.config
        factor = warmup_cosine(progress, warmup_epochs=config.warmup_epochs, start=config.first_lr, end=config.final_lr)
        return base * factor

    def seen(self, embeddings: Tensor, batch: Batch) -> dict[str, Tensor]:
        """Rows for `commit`: which images, and this process's part of their mean embedding."""
        return {"index": batch.index, "mean_embedding": (embeddings.detach().mean(0) * batch.share)[None]}

    def commit(self, rows: dict[str, Tensor], progress: Progress) -> None:  # noqa: ARG002
        """Keep the mean embedding."""
        self.spread.add(rows["mean_embedding"])

    def end_epoch(self, progress: Progress) -> dict[str, float]:  # noqa: ARG002
        """The spread of the epoch's projections."""
        return {"projection_spread": self.spread.close()}
