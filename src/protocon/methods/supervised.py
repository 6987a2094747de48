"""Supervised only: what the labels alone give, the floor that every method must beat."""

from torch import Tensor

from protocon.core.losses import supervised_loss
from protocon.methods.base import Forward, Method
from protocon.types import Batch, Progress, Step


class Supervised(Method):
    """Cross-entropy on the labelled images, with the same views, optimiser and steps as the others."""

    uses_unlabelled = False

    def step(self, network: Forward, teacher: Forward, batch: Batch, progress: Progress) -> Step:  # noqa: ARG002
        """L_x alone (Eq. 11)."""
        loss = supervised_loss(network(batch.labelled).logits, batch.targets) * batch.labelled_share
        terms: dict[str, Tensor] = {"loss_x": loss.detach()}
        return Step(loss, terms)
