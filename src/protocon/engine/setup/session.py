"""The set-up of a run, as a line: load → settle → encode → build. What it ends in is always complete."""

from dataclasses import dataclass
from pathlib import Path

import torch
from rich.console import Console
from torch import Tensor, nn

from protocon.data.imageset import DataBundle, ImageSet
from protocon.data.labels.label_split import Split
from protocon.data.labels.split_file import load_split
from protocon.engine.setup.encode import encode
from protocon.engine.setup.inputs import Inputs
from protocon.engine.setup.settled import Settled
from protocon.engine.setup.view_factory import Views
from protocon.errors import ConfigError
from protocon.methods import METHODS, Method, Problem
from protocon.networks.network import MIN_CLASSES, Network
from protocon.runs.run_data import choose_split, load_data
from protocon.settings.auto import Resolved, resolve_auto
from protocon.settings.config import RunConfig
from protocon.settings.resolved_config import ResolvedConfig


@dataclass(frozen=True)
class Session:
    """A run before its first step."""

    settled: Settled
    inputs: Inputs
    network: Network
    method: Method

    @property
    def resolved(self) -> Resolved:
        """Settings without `auto`, and why."""
        return self.settled.resolved

    @property
    def config(self) -> ResolvedConfig:
        """The config without `auto`."""
        return self.settled.config

    @property
    def bundle(self) -> DataBundle:
        """The data."""
        return self.settled.bundle

    @property
    def split(self) -> Split:
        """Which images are labelled."""
        return self.settled.split

    @property
    def views(self) -> Views:
        """How samples are looked at."""
        return self.inputs.views

    @property
    def total_steps(self) -> int:
        """Steps of the whole run."""
        return self.resolved.total_epochs * self.resolved.steps_per_epoch

    @property
    def truth(self) -> Tensor:
        """True classes of the unlabelled images where the data knows them, else −1. For the log only."""
        return torch.from_numpy(self.bundle.train.labels[self.split.unlabelled].copy())

    @property
    def input_shape(self) -> tuple[int, ...]:
        """Of one sample as `network` takes it."""
        return self.inputs.shape

    @property
    def samples(self) -> ImageSet:
        """What training reads."""
        return self.inputs.train

    def as_seen(self, images: ImageSet) -> ImageSet:
        """Training or test images, or some of the training images, as `network` sees them: themselves, or features."""
        return self.inputs.seen(images)

    def complete(self, network: nn.Module) -> nn.Module:
        """The network from images to classes: `network` itself, or on top of the frozen encoder."""
        return self.inputs.complete(network)


def settle(
    config: RunConfig,
    bundle: DataBundle,
    *,
    split_file: Path | None = None,
    split: Split | None = None,
) -> Settled:
    """Draw the split and settle every `auto`.

    Args:
        config: settings, `auto` allowed.
        bundle: the data.
        split_file: a resumed run's own split, to be used instead of drawing one again.
        split: the same, in memory.
    """
    train = bundle.train
    if split is None:
        split = choose_split(config, train) if split_file is None else load_split(split_file, train)
    if len(split.unlabelled) == 0:
        raise ConfigError(
            f"all {len(train)} images have labels, so there is nothing unlabelled to learn from; "
            "lower labels_per_class or set data.include_labelled=true"
        )
    resolved = resolve_auto(
        config,
        shape=train.shape,
        flip=bundle.hints.flip,
        unlabelled=len(split.unlabelled),
        classes=len(train.class_names),
    )
    return Settled(resolved, bundle, split)


def build(settled: Settled, inputs: Inputs) -> Session:
    """Network and method, for these labels; cheap where the encoder is frozen."""
    config, classes = settled.config, len(settled.bundle.train.class_names)
    method = METHODS[config.method_name](config.method, describe_problem(settled, inputs))
    return Session(settled, inputs, inputs.network(config, max(MIN_CLASSES, classes)), method)


def describe_problem(settled: Settled, inputs: Inputs) -> Problem:  # noqa: ARG001
    """What the method must know of the task. Estimates that rest on features, which are there by now, belong here.

    Args:
        settled: settings, data and labels.
        inputs: what the network is trained on.
    """
    train, split, config = settled.bundle.train, settled.split, settled.config
    return Problem(
        classes=len(train.class_names),
        unlabelled=len(split.unlabelled),
        labelled_targets=torch.from_numpy(train.labels[split.labelled].copy()),
        projection_dim=config.network.projection_dim,
        seed=config.run.seed,
    )


def prepare(config: RunConfig, bundle: DataBundle | None = None, *, console: Console | None = None) -> Session:
    """The whole line, on the CPU, for programs that want a session and nothing else.

    Args:
        config: settings, `auto` allowed.
        bundle: the data, if it is loaded already.
        console: where the progress of features goes; nowhere by default.
    """
    settled = settle(config, load_data(config) if bundle is None else bundle)
    return build(settled, encode(settled, console or Console(quiet=True), torch.device("cpu")))
