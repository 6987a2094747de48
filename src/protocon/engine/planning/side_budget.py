"""The side of the images at which a frozen encoder's features fit into the time that a user has."""

import time
from collections.abc import Callable

import numpy as np
import torch
from rich.console import Console

from protocon.base.duration import show_duration
from protocon.base.say import say
from protocon.data.imageset import DataBundle
from protocon.engine.planning.feature_memory import missing_features
from protocon.engine.setup.encode import build_frozen
from protocon.engine.setup.fabric import Fabric
from protocon.engine.setup.settled import Settled
from protocon.features.extract import FrozenEncoder
from protocon.runs.run_data import load_data
from protocon.settings.auto import packaged_encoder
from protocon.settings.config import RunConfig

SIDES = (192, 160, 128, 96)
"""Smaller ones are not worth the time that they save."""
SHARE = 0.6
"""Of the budget, for features: training and held-out labels want the rest."""
_TIMED = 16
"""Images that are timed, as many as are encoded at a time."""


def images_within_budget(
    config: RunConfig,
    settled: Settled,
    fabric: Fabric,
    console: Console,
    *,
    load: Callable[[RunConfig], DataBundle] = load_data,
) -> DataBundle:
    """The data, smaller where computing features of it would take most of the time budget.

    Only where nobody asked for a size or an encoder, and only of features that are not in the cache.

    Args:
        config: as asked for.
        settled: what `settle` made of it.
        fabric: for the device; all processes settle on what the first one measured.
        console: where the choice is said.
        load: reads the data again at another size.
    """
    bundle, budget = settled.bundle, config.optim.time_budget
    if budget is None or config.data.image_size != "auto" or packaged_encoder(config) is None:
        return bundle
    encoder = build_frozen(settled.config, bundle).to(fabric.device)
    missing = missing_features(settled.config, bundle, encoder)
    if not missing:
        return bundle
    side = bundle.train.shape[-1]
    each = fabric.broadcast(seconds_per_view(encoder, bundle), src=0)
    chosen = side_that_fits(each * missing, side, budget)
    if chosen == side:
        return bundle
    took, takes = (show_duration(each * missing * (other / side) ** 2) for other in (side, chosen))
    say(
        console,
        f"time budget: images of {chosen} pixels instead of {side}, whose features would take about {took} of "
        f"{show_duration(budget)}; these take about {takes}",
    )
    return load(config.model_copy(update={"data": config.data.model_copy(update={"image_size": chosen})}))


def side_that_fits(seconds: float, side: int, budget: float) -> int:
    """The largest side whose features leave time for the rest; the smallest one where none does.

    Args:
        seconds: that features take at the present side; the time goes with its square.
        side: the present one.
        budget: seconds for the whole run.
    """
    smaller = [other for other in SIDES if other < side]
    fitting = [other for other in (side, *smaller) if seconds * (other / side) ** 2 <= SHARE * budget]
    return max(fitting, default=min((side, *smaller)))


def seconds_per_view(encoder: FrozenEncoder, bundle: DataBundle) -> float:
    """Seconds that the encoder takes for one view of one image, on all threads, after one batch to warm up.

    Args:
        encoder: on its device.
        bundle: for images to time.
    """
    way = encoder.fastest(bundle.train.shape)
    rows = np.arange(min(_TIMED, len(bundle.train)))
    images = bundle.train.read(rows).to(encoder.mean.device).float() / 255
    batches = torch.split(images, way.batch)
    way.forward(batches[0])
    began = time.perf_counter()
    for batch in (*batches, *batches):
        way.forward(batch)
    if images.is_cuda:
        torch.cuda.synchronize()
    return (time.perf_counter() - began) / (2 * len(rows) * way.lanes)
