"""ProtoCon on a frozen encoder: the neighbourhood's label, solved for instead of learnt along the way.

The encoder does not change, so neither do an image's neighbours. Prototypes, neighbourhoods and the classifier's first
opinion need no training steps then: they are the fixed point of a mixture of Gaussians (one prototype per class), a
graph of nearest neighbours and a linear classifier of the labels, found in seconds. Its soft labels train the heads on
other views of the images, as Eq. 9 to 11 do with ProtoCon's.
"""

from typing import ClassVar, Literal

import numpy as np
import torch
from pydantic import Field
from threadpoolctl import threadpool_limits
from torch import Tensor

from protocon.core.losses import supervised_loss, unlabelled_loss
from protocon.core.mixture import MixtureSettings, fit_mixture
from protocon.core.neighbours import nearest, neighbour_graph, unit_rows
from protocon.core.refine import refine
from protocon.core.softmax_regression import softmax, softmax_regression
from protocon.methods.base import Forward, Method, MethodConfig, Problem, Samples
from protocon.methods.prior import ClassPrior, resolve_prior
from protocon.types import Batch, Progress, Step


class ProtoConFrozenConfig(MethodConfig):
    """Settings; none of the defaults depends on the data."""

    alpha: float = Field(default=0.5, ge=0, le=1)
    """Weight of the trained classifier's opinion against the neighbourhood's in an image's final label (Eq. 9)."""
    threshold: float = Field(default=0.95, ge=0, le=1)
    """τ: a label with at least this confidence can be accepted, unless held-out labels say that it takes more."""
    lambda_u: float = Field(default=1.0, ge=0)
    """Weight of the unlabelled loss."""
    inverse_penalty: float = Field(default=1.0, gt=0)
    """C of the linear classifier of the labels."""
    neighbours: int = Field(default=15, ge=1)
    """Nearest neighbours of an image in the graph."""
    graph_components: int = Field(default=128, ge=1)
    """Principal components in which neighbours are looked for."""
    mixture_components: int = Field(default=128, ge=1)
    """Principal components in which classes are Gaussians."""
    sharpness: float = Field(default=0.25, ge=0)
    """Exponent of the Gaussians: components are not independent, so their product claims too much."""
    smoothing: float = Field(default=5.0, ge=0)
    """Weight of the neighbours' mean opinion, in nats; 0 leaves the graph out."""
    shrinkage: float = Field(default=0.3, ge=0, le=1)
    """How far the classes' covariance is pulled to a multiple of the identity."""
    label_weight: float = Field(default=5.0, gt=0)
    """A labelled image counts as this many in the Gaussians."""
    rounds: int = Field(default=8, ge=1)
    """Updates of the Gaussians."""
    linear_share: float = Field(default=0.1, ge=0, le=1)
    """Share of the linear classifier's opinion in the soft labels that train the heads."""
    class_prior: ClassPrior | Literal["estimated"] = "estimated"
    """Class frequencies: estimated from the images; those of the labels; uniform; or a list."""


class ProtoConFrozen(Method):
    """The neighbourhood's soft labels train the heads; the final label mixes both opinions."""

    Config: ClassVar[type[MethodConfig]] = ProtoConFrozenConfig
    config: ProtoConFrozenConfig
    uses_samples: ClassVar[bool] = True
    neighbourhood: Tensor
    """What the fixed point says of every unlabelled image, (N, C)."""
    prototype: Tensor
    """The Gaussians' opinion alone, (N, C)."""
    prior: Tensor
    """Class frequencies (C,)."""

    def __init__(self, config: ProtoConFrozenConfig, problem: Problem) -> None:
        super().__init__(config, problem)
        self.config = config
        uniform = torch.full((problem.unlabelled, problem.classes), 1.0 / problem.classes)
        self.register_buffer("neighbourhood", uniform)
        self.register_buffer("prototype", uniform.clone())
        self.register_buffer("prior", uniform[0].clone())

    def prepare(self, samples: Samples) -> None:
        """Find the fixed point: the linear classifier's opinion, the Gaussians' and the neighbours', in agreement.

        On one thread: sums on several come in another order, and the last bits would depend on the machine.
        """
        with threadpool_limits(1, user_api="blas"):
            self._solve(samples)

    def _solve(self, samples: Samples) -> None:
        config, classes = self.config, self.problem.classes
        views = samples.views.float().cpu().numpy()
        rows = views.mean(1)
        labels = np.full(len(rows), -1)
        labels[samples.labelled.cpu().numpy()] = samples.targets.cpu().numpy()
        known = np.flatnonzero(labels >= 0)
        own = np.eye(classes, dtype=np.float32)[labels[known]]
        linear = softmax_regression(
            views[known].reshape(-1, views.shape[-1]),
            np.repeat(own, views.shape[1], axis=0),
            penalty=1.0 / (config.inverse_penalty * len(known)),
            # Labels drawn at random are unequal in number: every class counts the same.
            weights=np.repeat(1.0 / own.sum(0)[labels[known]], views.shape[1]),
        )
        anchor = np.log(softmax(linear.logits(rows)) + 1e-6)
        units = unit_rows(rows[:, : config.graph_components])
        graph = neighbour_graph(*nearest(units, units, config.neighbours, same=True))
        points = rows[:, : config.mixture_components]
        points = points / np.sqrt(points.var(0).mean() + 1e-12)
        given = None if config.class_prior == "estimated" else resolve_prior(config.class_prior, self.problem)
        uniform = np.full(classes, 1.0 / classes)
        mixture = fit_mixture(
            points,
            labels,
            anchor,
            graph,
            prior=uniform if given is None else given.numpy().astype(np.float64),
            settings=MixtureSettings(
                likelihood=config.sharpness,
                smoothing=config.smoothing,
                shrinkage=config.shrinkage,
                rounds=config.rounds,
                inner=3,
                label_weight=config.label_weight,
                covariance="full",
            ),
        )
        chosen = samples.unlabelled.cpu().numpy()
        gaussians = softmax(config.sharpness * mixture.log_likelihood(points))
        agreed = (1.0 - config.linear_share) * mixture.probs + config.linear_share * np.exp(anchor)
        self.neighbourhood.copy_(torch.from_numpy(agreed[chosen] / agreed[chosen].sum(1, keepdims=True)))
        self.prototype.copy_(torch.from_numpy(gaussians[chosen]))
        self.prior.copy_(torch.from_numpy(mixture.probs.mean(0)) if given is None else given)

    def step(self, network: Forward, teacher: Forward, batch: Batch, progress: Progress) -> Step:  # noqa: ARG002
        """Labels train the labelled images, the neighbourhood's soft labels the strong views of the others."""
        labelled, weak, (strong,) = self.forward_views(network, teacher, batch)
        probs = weak.logits.softmax(-1)
        target = self.neighbourhood[batch.index].to(probs.dtype)
        everyone = torch.ones(len(target), dtype=torch.bool, device=target.device)
        loss_x = supervised_loss(labelled.logits, batch.targets) * batch.labelled_share
        loss_u = unlabelled_loss(strong.logits, target, everyone) * batch.share
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

    def opinions(self, probs: Tensor, index: Tensor) -> dict[str, Tensor]:
        """The trained classifier's opinion, the neighbourhood's, the nearest prototype's, and the first two mixed."""
        neighbourhood = self.neighbourhood[index].to(probs.dtype)
        return {
            "classifier": probs,
            "cluster": neighbourhood,
            "prototype": self.prototype[index].to(probs.dtype),
            "refined": refine(probs, neighbourhood, self.config.alpha),
        }

    def estimated_prior(self) -> Tensor:
        """Class frequencies (C,) that the images seem to have."""
        return self.prior
