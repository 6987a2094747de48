"""Everything that a run is made of, built from its config."""

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from protocon.auto import Resolved, image_size_for, resolve_auto
from protocon.config import RunConfig
from protocon.data.imageset import DataBundle, ImageSet
from protocon.data.options import SourceOptions
from protocon.data.sources import DATASETS
from protocon.data.splitfile import load_split
from protocon.data.splits import Split, make_split
from protocon.engine.views import Views, build_views
from protocon.errors import ConfigError
from protocon.methods import METHODS, Method, Problem
from protocon.networks.encoders import build_encoder
from protocon.networks.network import Network

_STATISTICS_IMAGES = 2000


@dataclass(frozen=True)
class Session:
    """A run before its first step."""

    resolved: Resolved
    bundle: DataBundle
    split: Split
    views: Views
    network: Network
    method: Method

    @property
    def config(self) -> RunConfig:
        """The config without `auto`."""
        return self.resolved.config

    @property
    def total_steps(self) -> int:
        """Steps of the whole run."""
        return self.resolved.total_epochs * self.resolved.steps_per_epoch

    @property
    def hidden_truth(self) -> Tensor:
        """True classes of the unlabelled images where the data knows them, else −1. For the log only."""
        return torch.from_numpy(self.bundle.train.labels[self.split.unlabelled].copy())


def load_data(config: RunConfig) -> DataBundle:
    """The data set that a config names."""
    data = config.data
    source = DATASETS[data.name]
    size = None if data.image_size == "auto" else int(data.image_size)
    options = SourceOptions(
        root=data.root,
        labels=data.labels,
        image_size=size,
        grey=data.grey,
        domain=data.domain,
        test_fraction=data.test_fraction,
        storage=data.storage,
        bad_files=data.bad_files,
    )
    bundle = source(options)
    shape = bundle.train.shape
    if size is None and len(shape) == 3 and shape[-1] < image_size_for(shape[-1]):
        bundle = source(replace(options, image_size=image_size_for(shape[-1])))
    return bundle


def choose_split(config: RunConfig, train: ImageSet) -> Split:
    """The split file that was given, or labels drawn as asked."""
    data = config.data
    if data.split is not None:
        return load_split(data.split, train)
    if data.labels_per_class is not None and data.labels_percent is not None:
        raise ConfigError("labels_per_class and labels_percent are both set; give one of them")
    return make_split(
        train,
        per_class=data.labels_per_class,
        fraction=None if data.labels_percent is None else data.labels_percent / 100,
        seed=config.run.seed,
        include_labelled=data.include_labelled,
    )


def input_statistics(images: ImageSet) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation per channel (of [0, 1]) or per feature, from up to 2,000 samples."""
    chosen = np.unique(np.linspace(0, len(images) - 1, min(len(images), _STATISTICS_IMAGES)).astype(np.int64))
    sample = images.read(chosen)
    if len(images.shape) == 1:
        return sample.mean(0), sample.std(0, correction=0).clamp(min=1e-6)
    pixels = sample.double() / 255.0
    return pixels.mean((0, 2, 3)).float(), pixels.std((0, 2, 3), correction=0).clamp(min=1e-3).float()


def build_network(config: RunConfig, bundle: DataBundle) -> Network:
    """Encoder and heads, initialised from the seed alone."""
    train = bundle.train
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.run.seed)
        encoder = build_encoder(
            config.network.encoder,
            input_shape=train.shape,
            pretrained=config.network.pretrained,
            weights=config.network.weights,
            norm_momentum=config.network.norm_momentum,
        )
        statistics = input_statistics(train)
        trained_before = config.network.pretrained or config.network.weights is not None
        mean: Tensor = torch.tensor(encoder.mean) if trained_before and encoder.mean else statistics[0]
        std: Tensor = torch.tensor(encoder.std) if trained_before and encoder.std else statistics[1]
        uses_projector = METHODS[config.method_name].uses_projector
        return Network(
            encoder,
            classes=len(train.class_names),
            projection_dim=int(config.network.projection_dim) if uses_projector else 0,
            mean=mean,
            std=std,
            projector_norm=config.network.projector_norm,
        ).to(memory_format=torch.channels_last)


def prepare(config: RunConfig, bundle: DataBundle | None = None) -> Session:
    """Load the data, draw the split, settle every `auto`, build views, network and method."""
    bundle = load_data(config) if bundle is None else bundle
    train = bundle.train
    split = choose_split(config, train)
    if len(split.unlabelled) == 0:
        raise ConfigError(
            f"all {len(train)} images have labels, so there is nothing unlabelled to learn from; "
            "lower labels_per_class or set data.include_labelled=true"
        )
    resolved = resolve_auto(config, shape=train.shape, flip=bundle.hints.flip, unlabelled=len(split.unlabelled))
    config = resolved.config
    network = build_network(config, bundle)
    views = build_views(config, shape=train.shape, feature_std=network.std if len(train.shape) == 1 else None)
    method_class = METHODS[config.method_name]
    method = method_class(
        config.method,
        Problem(
            classes=len(train.class_names),
            unlabelled=len(split.unlabelled),
            labelled_targets=torch.from_numpy(train.labels[split.labelled].copy()),
            projection_dim=int(config.network.projection_dim),
            seed=config.run.seed,
        ),
    )
    return Session(resolved, bundle, split, views, network, method)
