"""What a method is: losses from a batch, and buffers that change only in `commit` and `end_epoch`."""

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import torch
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor, nn

from protocon.core.schedules import fixmatch_cosine
from protocon.methods.needs import Crops, Facts, FixedTargets, Momentum, Support
from protocon.networks.projector import ProjectorShape
from protocon.types import Batch, Outputs, Progress, Step, Update

Forward = Callable[[Tensor], Outputs]
"""A network seen from a method: images in, outputs out."""

AVERAGED = "averaged"
"""Name of the averaged copy of the main network, which every run has."""


class MethodConfig(BaseModel):
    """Settings that every method has."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    joint_batchnorm: bool = False
    """Run labelled, weak and strong views through one forward pass with gradient, as FixMatch's code does.
    Off: the weak views go first and without gradient, which saves a third of the step."""
    teacher: Literal["student", "eman"] = "student"
    """Who judges the weak views: the network itself, or its averaged copy with averaged normalisation
    statistics (EMAN)."""

    def settled(self, facts: Facts, reasons: dict[str, str]) -> "MethodConfig":  # noqa: ARG002
        """The settings without `auto`, as this method chooses them for these data; most have nothing to choose.

        A method that has returns a class of its own, in whose types there is no `auto`: its `__init__` takes that one.

        Args:
            facts: of the data and the run.
            reasons: takes a line for each value that is chosen.
        """
        return self

    @classmethod
    def of(cls, settings: "MethodConfig") -> Self:
        """The same values in this class; an error where one of them does not belong there, such as `auto`."""
        return cls.model_validate(dict(settings))

    def choose(self, reasons: dict[str, str], key: str, value: object, reason: str) -> Self:
        """The settings with this value, if the key is `auto`, and the reason written down.

        Args:
            reasons: takes the line.
            key: of these settings.
            value: to take where it is `auto`.
            reason: in a few words.
        """
        if getattr(self, key) != "auto":
            return self
        reasons[f"method.{key}"] = f"{value} ({reason})"
        return self.model_copy(update={key: value})


class PseudoLabelConfig(MethodConfig):
    """Settings of methods that keep pseudo-labels above a confidence."""

    threshold: float = Field(default=0.95, ge=0, le=1)
    """τ: a pseudo-label with at least this confidence is reliable."""
    lambda_u: float = Field(default=1.0, ge=0)
    """Weight of the unlabelled loss."""


@dataclass(frozen=True)
class Problem:
    """The sizes that a method must know to build its buffers."""

    classes: int
    """C."""
    unlabelled: int
    """N, samples in the unlabelled set."""
    labelled_targets: Tensor
    """Classes of the labelled set, (M,) int64."""
    projection_dim: int
    """d."""
    seed: int = 0


@dataclass(frozen=True)
class Samples:
    """The whole training set as features that do not change, for methods that look at all of it before training."""

    views: Tensor
    """Features of every image's views, (N + M, V, d), the clean one first."""
    labelled: Tensor
    """Positions of the labelled images, (M,) int64."""
    targets: Tensor
    """Their classes, (M,) int64."""
    unlabelled: Tensor
    """Positions of the unlabelled images, (N,) int64."""


class Method(nn.Module):
    """Base of all methods. Holds buffers only, is never wrapped for distribution.

    `step` reads state and computes; `commit` alone writes it, from the rows of *all* processes in rank
    order, so that every process holds the same state; `end_epoch` publishes what an epoch gathered.

    Most methods have one network and one update per step: they write `step`. A method with several updates per step
    writes `updates` instead, and names its networks in `build_networks`.
    """

    Config: ClassVar[type[MethodConfig]] = MethodConfig
    uses_projector: ClassVar[bool] = False
    """Whether the network needs the projector h."""
    projector: ClassVar[ProjectorShape] = ProjectorShape()
    """Its layers."""
    uses_labels: ClassVar[bool] = True
    """Whether it learns from labels. If not (pre-training), all images are unlabelled and no classes are predicted."""
    uses_samples: ClassVar[bool] = False
    """Whether `prepare` must see the features of the whole training set before the first step."""
    uses_unlabelled: ClassVar[bool] = True
    """Whether views of unlabelled images are needed at all."""
    weak_view: bool = True
    """Whether a step needs the weak view of each unlabelled image."""
    strong_views: ClassVar[int] = 1
    """How many strong views of each unlabelled image a step needs."""
    crops: tuple[Crops, ...] = ()
    """Random crops of each unlabelled image that a step needs, one entry for each size or kind."""
    main: ClassVar[str] = "network"
    """Name of the network that the run is about: its average is kept as `averaged`."""
    evaluated: ClassVar[str] = AVERAGED
    """Name of the network or momentum copy that predicts and is saved as the run's model."""

    def __init__(self, config: MethodConfig, problem: Problem) -> None:
        super().__init__()
        self.settings = config
        self.problem = problem

    def wants_samples(self) -> bool:
        """Whether `prepare` is called: where the method always wants it, or its class frequencies are estimated."""
        return self.uses_samples or getattr(self.settings, "class_prior", None) == "estimated"

    def prepare(self, samples: Samples) -> None:
        """Look at all features before training, where `wants_samples` says so; the same samples give the same state."""

    @classmethod
    def prepare_together(cls, methods: Sequence["Method"], runs: Sequence[Samples]) -> None:
        """Prepare runs that each leave out some of the same labels; a method may let them learn from each other.

        Args:
            methods: of this class, one for each run.
            runs: features of the whole training set with each run's own labels.
        """
        for method, samples in zip(methods, runs, strict=True):
            method.prepare(samples)

    def estimated_prior(self) -> Tensor | None:
        """Class frequencies (C,) that `prepare` estimated from all features; None where it did not."""
        return None

    def step(self, network: Forward, teacher: Forward, batch: Batch, progress: Progress) -> Step:
        """Losses of one batch. Reads the method's state, changes nothing.

        Args:
            network: the main network, with gradient.
            teacher: the network or copy that judges the weak views.
            batch: this step's views.
            progress: where training is.
        """
        raise NotImplementedError

    def fixed_targets(self) -> FixedTargets | None:
        """The soft labels of all unlabelled images, of a method whose steps do nothing but learn them; else None.

        The loss of `step` must be the mean cross-entropy of the labelled images with their labels, and `weight` times
        that of the one strong view with these. Such runs are trained side by side, many at once.
        """
        return None

    def updates(
        self, networks: Mapping[str, Forward], batch: Batch, progress: Progress
    ) -> Generator[Update, None, Step]:
        """The updates of one step, one after the other; returns the terms and rows of the whole step.

        At each `yield` the trainer computes the update's gradients and takes the optimiser's step; after it, the
        generator can look at the network as updated. Changes nothing of the method itself.

        Args:
            networks: all networks and momentum copies by name.
            batch: this step's views.
            progress: where training is.
        """
        step = self.step(networks[self.main], networks[self.teacher()], batch, progress)
        del batch  # parts of an accumulated step are held until the last of them; their views need not be
        if step.loss is not None:
            yield Update(step.loss, self.main)
        return step

    def teacher(self) -> str:
        """Name of the network or copy that `step` gets as its teacher."""
        return AVERAGED if self.settings.teacher == "eman" else self.main

    def build_networks(self, network: nn.Module) -> dict[str, nn.Module]:
        """The networks to train by name, made from the one that the settings describe; each has its own optimiser.

        Initialise further weights as a function of `problem.seed`. Every module returns `Outputs`.
        """
        return {self.main: network}

    def copies(self) -> dict[str, Momentum]:
        """Momentum copies by name, besides the averaged one."""
        return {}

    def teachers(self) -> dict[str, Path]:
        """Folders of finished runs whose networks, which stay as they are, are among `networks` by these names."""
        return {}

    def rates(self, network: str) -> dict[str, float]:  # noqa: ARG002
        """Factors on a network's learning rate for weights whose names start so; 1 for all others."""
        return {}

    def support(self) -> Support | None:
        """The class-balanced support set that each step needs, if any."""
        return None

    def optim(self, network: str) -> dict[str, Any]:  # noqa: ARG002
        """Settings of section `optim` that are different for this network, such as {"lr": 0.01}."""
        return {}

    def learning_rate(self, network: str, base: float, progress: Progress) -> float:  # noqa: ARG002
        """The learning rate of a network in the step that comes next, from its `optim.lr`.

        Args:
            network: its name.
            base: as the settings have it.
            progress: where training is.
        """
        return base * fixmatch_cosine(progress)

    def weight_decay(self, network: str, base: float, progress: Progress) -> float:  # noqa: ARG002
        """The same for weight decay.

        Args:
            network: its name.
            base: as the settings have it.
            progress: where training is.
        """
        return base

    def constrain(self, name: str, network: nn.Module) -> None:
        """Put a network's weights back where they must be after an optimiser's step, such as vectors at unit length."""

    def model(self, network: nn.Module) -> nn.Module:
        """The network that predicts and is saved: the evaluated one, without what the method wrapped around it."""
        return network

    def commit(self, rows: dict[str, Tensor], progress: Progress) -> None:
        """Write the gathered rows of a global batch into the state."""

    def end_epoch(self, progress: Progress) -> dict[str, float]:  # noqa: ARG002
        """Publish what the epoch gathered; returns numbers for the log."""
        return {}

    def remark(self) -> str | None:
        """Something that the user should know of the epoch that has just ended, in a line; mostly nothing."""
        return None

    def opinions(self, probs: Tensor, index: Tensor) -> dict[str, Tensor]:  # noqa: ARG002
        """Class probabilities (n, C) by source, for the label file, from the classifier's `probs`.

        Args:
            probs: classifier's softmax of unlabelled images, (n, C).
            index: their positions in the unlabelled set, (n,).
        """
        return {"classifier": probs, "refined": probs}

    def prototype_scores(self, embeddings: Tensor) -> Tensor | None:  # noqa: ARG002
        """Cosine of each projection (n, d) to each class prototype, (n, C); None for methods without prototypes."""
        return None

    def held(self) -> dict[str, Tensor]:
        """What is held of the unlabelled set, for the record: `label` (N,), `assignment` (N, H), `cluster_table`."""
        return {}

    def summary(self) -> dict[str, int | float]:
        """What the method decided for itself (K, n, γ, …), shown before training starts."""
        return {}

    def forward_views(
        self, network: Forward, teacher: Forward, batch: Batch
    ) -> tuple[Outputs, Outputs, tuple[Outputs, ...]]:
        """Outputs of the labelled, weak and strong views; the weak ones are targets without gradient.

        Args:
            network: as passed to `step`.
            teacher: as passed to `step`.
            batch: this step's views.
        """
        sizes = [len(batch.labelled), *(len(view) for view in batch.strong)]
        if self.settings.joint_batchnorm and self.settings.teacher == "student":
            out = network(torch.cat([batch.labelled, *batch.strong, batch.weak]))
            weak = out.rows(sum(sizes), len(out.logits)).detach()
        else:
            with torch.no_grad():
                weak = teacher(batch.weak)
            out = network(torch.cat([batch.labelled, *batch.strong]))
        starts = [sum(sizes[:i]) for i in range(len(sizes))]
        labelled, *strong = (out.rows(a, a + n) for a, n in zip(starts, sizes, strict=True))
        return labelled, weak, tuple(strong)

    def judge_labelled(self, teacher: Forward, batch: Batch, labelled: Outputs) -> Outputs:
        """What the judge of the weak views says of the labelled ones, for banks that hold both.

        Args:
            teacher: as passed to `step`.
            batch: this step's views.
            labelled: the network's own outputs of the labelled views.
        """
        if self.settings.teacher == "student":
            return labelled.detach()
        with torch.no_grad():
            return teacher(batch.labelled)
