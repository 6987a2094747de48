"""A method of one's own: entropy minimisation (Grandvalet & Bengio, 2004), trained on digits.

python examples/add_method.py [key=value ...]

In the package itself a method is one file and one line: docs/adding-a-method.md.
"""

import sys
from typing import ClassVar

import torch
from pydantic import Field

from protocon import METHODS, build_config, fit
from protocon.core.losses import supervised_loss
from protocon.methods.base import Forward, Method, MethodConfig, Problem
from protocon.types import Batch, Progress, Step


class EntropyConfig(MethodConfig):
    """Settings of entropy minimisation."""

    lambda_u: float = Field(default=0.1, ge=0)
    """Weight of the unlabelled loss."""


class EntropyMinimisation(Method):
    """Predictions on unlabelled images become confident, whatever they are."""

    Config: ClassVar[type[MethodConfig]] = EntropyConfig

    def __init__(self, config: EntropyConfig, problem: Problem) -> None:
        super().__init__(config, problem)
        self.config = config

    def step(self, network: Forward, teacher: Forward, batch: Batch, progress: Progress) -> Step:  # noqa: ARG002
        """Cross-entropy on labelled images and the entropy of predictions on unlabelled ones."""
        labelled, weak, (strong,) = self.forward_views(network, teacher, batch)
        log_probs = strong.logits.log_softmax(-1)
        entropy = -(log_probs.exp() * log_probs).sum(-1)

        # The shares weight a process's rows where several processes hold slices of unequal size.
        loss_x = supervised_loss(labelled.logits, batch.targets) * batch.labelled_share
        loss_u = entropy.mean() * batch.share
        terms = {"loss_x": loss_x.detach(), "loss_u": loss_u.detach(), "retention": torch.tensor(batch.share)}
        label = weak.logits.argmax(-1)
        rows = {"index": batch.index, "classifier": label, "refined": label}
        return Step(loss_x + self.config.lambda_u * loss_u, terms, rows)


def main(*overrides: str) -> None:
    """Add the method to the table, then use it by its name."""
    METHODS["entropy"] = EntropyMinimisation
    settings = {"method_name": "entropy", "data": {"name": "digits", "labels_per_class": 4}}
    result = fit(build_config(settings=settings, overrides=overrides), out="runs")
    print(f"test accuracy {result['test_accuracy']:.1%}, run folder {result['run']}")


if __name__ == "__main__":
    main(*sys.argv[1:])
