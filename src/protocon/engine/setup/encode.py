"""A run on a frozen encoder: its features, from the cache or computed, in the place of images."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import torch
from rich.console import Console

from protocon.base import distributed
from protocon.data.imageset import DataBundle, FeatureArray, ImageSet
from protocon.engine.setup.session import Features, Session
from protocon.engine.setup.view_factory import CLEAN, image_views, views_of_features
from protocon.features.cached_views import CachedViews
from protocon.features.extract import FrozenEncoder, View, feature_table, fill
from protocon.features.feature_progress import FeatureProgress
from protocon.features.key import default_cache
from protocon.features.reduce import fitted_space, reduced


def with_features(
    session: Session, console: Console, device: torch.device, *, after_chunk: Callable[[], None] = lambda: None
) -> Session:
    """The session with the features that its frozen encoder gives; any other session as it is.

    Args:
        session: the run.
        console: for progress.
        device: where to compute them.
        after_chunk: called whenever a part of them is in the cache; may raise.
    """
    if session.frozen is None:
        return session
    train, test = _encoded(session, session.frozen.to(device), console, after_chunk)
    components = len(session.network.mean)
    kind, parts = session.config.network.space, session.frozen.parts
    space = fitted_space(train, "roots" if kind == "auto" else kind, parts=parts, components=components)
    features = Features(reduced(train, space), None if test is None else reduced(test, space), space)
    return replace(session, features=features, views=views_of_features(session.config, components=components))


def clean_features(session: Session, console: Console, device: torch.device) -> DataBundle:
    """The data as embeddings, for classifiers that take plain rows: what a frozen encoder says of the clean images."""
    if session.frozen is None:
        return session.bundle
    train, test = _encoded(session, session.frozen.to(device), console, lambda: None)
    return replace(session.bundle, train=_plain(train), test=None if test is None else _plain(test))


def _plain(views: CachedViews) -> FeatureArray:
    rows = views.clean(most=len(views))
    return FeatureArray(rows, views.labels, views.class_names, name=views.name, ids=views.ids, content=views.content())


def _encoded(
    session: Session, encoder: FrozenEncoder, console: Console, after_chunk: Callable[[], None]
) -> tuple[CachedViews, CachedViews | None]:
    """All views of the training images and the clean one of the test images, as features.

    The views' draws do not depend on the run's seed, so that runs of all seeds and methods share one computation.
    """
    config, bundle = session.config, session.bundle
    cache = (config.run.cache or default_cache()).expanduser()
    views = image_views(config, shape=bundle.train.shape)
    cached = partial(cached_views, encoder=encoder, cache=cache, console=console, after_chunk=after_chunk)
    train = cached(bundle.train, views=views)
    return train, None if bundle.test is None else cached(bundle.test, views=[CLEAN])


def cached_views(
    images: ImageSet,
    encoder: FrozenEncoder,
    views: Sequence[View],
    *,
    cache: Path,
    console: Console,
    after_chunk: Callable[[], None] = lambda: None,
) -> CachedViews:
    """Features of these views of these images. Processes share the work; what is in the cache is not computed again.

    Args:
        images: the set.
        encoder: on its device.
        views: what to compute, in order.
        cache: folder that holds tables of features.
        console: for progress.
        after_chunk: called whenever a part of them is in the cache; may raise.
    """
    table = feature_table(images, encoder, views, seed=0, cache=cache)
    missing = table.missing()
    ready = table.chunks - len(missing)
    kept = f"{len(images):,} images × {len(views)} views ({table.nbytes / 2**20:.0f} MiB) in {table.folder}"
    # Machines may differ in what they have: all compute, or none, because they wait for each other.
    if not distributed.largest(len(missing), encoder.mean.device):
        console.print(f"features of {kept}", highlight=False, markup=False, soft_wrap=True)
    else:
        done = min(ready * table.chunk, len(images))
        known = f"; {done:,} images are there already" if ready else ""
        console.print(f"computing features of {kept}{known}", highlight=False, markup=False, soft_wrap=True)
        if distributed.rank() == 0:
            table.prepare()
        distributed.barrier()  # nobody writes before all have looked
        world = distributed.world_size()
        with FeatureProgress(console, title="features", total=len(images), ready=done) as progress:
            own = missing[distributed.rank() :: world]

            def kept_chunk(count: int) -> None:
                progress.add(count * world)
                after_chunk()

            fill(table, images, encoder, views, seed=0, chunks=own, done=kept_chunk)
        distributed.barrier()
        # Processes on another machine wrote to a disk of their own: what is not on this one is computed here.
        fill(table, images, encoder, views, seed=0, chunks=table.missing(), done=lambda _: None)
    return CachedViews(images, table.open())
