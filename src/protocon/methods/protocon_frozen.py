"""ProtoCon on a frozen encoder: the neighbourhood's label, solved for instead of learnt along the way.

The encoder does not change, so neither do an image's neighbours. Prototypes, neighbourhoods and the classifier's first
opinion need no training steps then: they are the fixed point of a mixture of Gaussians (one prototype per class), a
graph of nearest neighbours and a linear classifier of the labels, found in seconds. Its soft labels train the heads on
other views of the images, as Eq. 9 to 11 do with ProtoCon's.
"""

from collections.abc import Sequence
from typing import ClassVar, Literal

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from protocon.core.losses import supervised_loss, unlabelled_loss
from protocon.core.refine import refine
from protocon.methods.base import Forward, Method, MethodConfig, Problem, Samples
from protocon.methods.needs import Facts, FixedTargets
from protocon.methods.neighbourhood import Neighbourhood, NeighbourhoodSettings, find_neighbourhood, find_neighbourhoods
from protocon.methods.prior import ClassPrior, resolve_prior
from protocon.types import Batch, Progress, Step


class ProtoConFrozenConfig(NeighbourhoodSettings):
    """Settings of the fixed point, and of what is made of it."""

    alpha: float = Field(default=0.5, ge=0, le=1)
    """Weight of the trained classifier's opinion against the neighbourhood's in an image's final label (Eq. 9)."""
    threshold: float = Field(default=0.95, ge=0, le=1)
    """τ: a label with at least this confidence can be accepted, unless held-out labels say that it takes more."""
    lambda_u: float = Field(default=1.0, ge=0)
    """Weight of the unlabelled loss."""
    class_prior: ClassPrior | Literal["auto"] = "auto"
    """Class frequencies that opinions are aligned to: what the images say (auto, estimated); those of the labels;
    uniform; or a list."""

    def settled(self, facts: Facts, reasons: dict[str, str]) -> "ResolvedProtoConFrozen":  # noqa: ARG002
        """Class frequencies."""
        prior = "estimated" if self.class_prior == "auto" else self.class_prior
        return ResolvedProtoConFrozen.of(self.model_copy(update={"class_prior": prior}))


class ResolvedProtoConFrozen(ProtoConFrozenConfig):
    """The same without `auto`."""

    class_prior: ClassPrior


class ProtoConFrozen(Method):
    """The neighbourhood's soft labels train the heads; the final label mixes both opinions."""

    Config: ClassVar[type[MethodConfig]] = ProtoConFrozenConfig
    config: ResolvedProtoConFrozen
    uses_samples: ClassVar[bool] = True
    neighbourhood: Tensor
    """What the fixed point says of every unlabelled image, (N, C)."""
    prototype: Tensor
    """The Gaussians' opinion alone, (N, C)."""
    prior: Tensor
    """Class frequencies (C,)."""
    temperature: Tensor
    """By which opinions are made less sure, so that they are right as often as they say."""

    def __init__(self, config: ResolvedProtoConFrozen, problem: Problem) -> None:
        super().__init__(config, problem)
        self.config = config
        uniform = torch.full((problem.unlabelled, problem.classes), 1.0 / problem.classes)
        self.register_buffer("neighbourhood", uniform)
        self.register_buffer("prototype", uniform.clone())
        self.register_buffer("prior", uniform[0].clone())
        self.register_buffer("temperature", torch.ones(()))

    def prepare(self, samples: Samples) -> None:
        """Find the fixed point: the linear classifier's opinion, the Gaussians' and the neighbours', in agreement.

        Args:
            samples: features of the whole training set.
        """
        given = self._given()
        solved = find_neighbourhood(samples, classes=self.problem.classes, settings=self.config, prior=given)
        self._take(solved, samples)

    @classmethod
    def prepare_together(cls, methods: Sequence[Method], runs: Sequence[Samples]) -> None:
        """The fixed points of held-out runs, each of which tells the others what it says of the labels it lacks.

        Of fewer runs than a run by itself holds labels out in, each holds out its own: too many labels are missing
        from each of them to say how good the others are.
        """
        own = [method for method in methods if isinstance(method, cls)]
        config = own[0].config
        # Frequencies of the labels are not the same for all runs.
        if not 0 < config.held_out_groups <= len(runs) or config.class_prior == "labels":
            super().prepare_together(methods, runs)
            return
        found = find_neighbourhoods(runs, classes=own[0].problem.classes, settings=config, prior=own[0]._given())
        for method, solved, samples in zip(own, found, runs, strict=True):
            method._take(solved, samples)

    def _given(self) -> np.ndarray | None:
        """Class frequencies that the user gave."""
        if self.config.class_prior == "estimated":
            return None
        prior = resolve_prior(self.config.class_prior, self.problem)
        even = np.full(self.problem.classes, 1.0 / self.problem.classes)
        return even if prior is None else prior.numpy().astype(np.float64)

    def _take(self, found: Neighbourhood, samples: Samples) -> None:
        chosen, given = samples.unlabelled.cpu().numpy(), self._given()
        self.temperature.fill_(found.temperature)
        self.neighbourhood.copy_(torch.from_numpy(found.probs[chosen]))
        self.prototype.copy_(torch.from_numpy(found.prototype[chosen]))
        self.prior.copy_(torch.from_numpy(found.prior if given is None else given))

    def step(self, network: Forward, teacher: Forward, batch: Batch, progress: Progress) -> Step:  # noqa: ARG002
        """Labels train the labelled images, the neighbourhood's soft labels the strong views of the others."""
        labelled, weak, (strong,) = self.forward_views(network, teacher, batch)
        probs = weak.logits.softmax(-1)
        target = self.neighbourhood[batch.index].to(probs.dtype)
        everyone = torch.ones(len(target), dtype=torch.bool, device=target.device)
        loss_x = supervised_loss(labelled.logits, batch.targets) * batch.labelled_share
        loss_u = unlabelled_loss(strong.logits, target.to(strong.logits.dtype), everyone) * batch.share
        refined = refine(probs, target, self.config.alpha)
        agreement = (probs.argmax(-1) == target.argmax(-1)).float().mean()
        sure = (target.max(-1).values >= self.config.threshold).float().mean()
        terms = {
            "loss_x": loss_x.detach(),
            "loss_u": loss_u.detach(),
            "retention": sure * batch.share,
            "agreement": agreement * batch.share,
        }
        rows = {"index": batch.index, "classifier": probs.argmax(-1), "refined": refined.argmax(-1)}
        return Step(loss_x + self.config.lambda_u * loss_u, terms, rows)

    def fixed_targets(self) -> FixedTargets:
        """The neighbourhood's soft labels: the weak view is only for the log."""
        return FixedTargets(self.neighbourhood, self.config.lambda_u)

    def opinions(self, probs: Tensor, index: Tensor) -> dict[str, Tensor]:
        """The trained classifier's opinion, the neighbourhood's, the nearest prototype's, and the first two mixed.

        The neighbourhood's and the mixed one are as sure as held-out labels allow.
        """
        neighbourhood = self.neighbourhood[index].to(probs.dtype)
        return {
            "classifier": probs,
            "cluster": self._calmed(neighbourhood),
            "prototype": self.prototype[index].to(probs.dtype),
            "refined": self._calmed(refine(probs, neighbourhood, self.config.alpha)),
        }

    def _calmed(self, probs: Tensor) -> Tensor:
        return ((probs + 1e-6).log() / self.temperature.to(probs.dtype)).softmax(-1)

    def estimated_prior(self) -> Tensor | None:
        """Class frequencies (C,) that the images seem to have; None where they were given."""
        return self.prior if self.config.class_prior == "estimated" else None
