"""A trained network's outputs for samples of any kind, as scikit-learn expects them: float64."""

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from protocon.data.files.decode import decode_image
from protocon.data.files.resize_arrays import resize_images
from protocon.engine.setup.view_factory import build_views
from protocon.errors import DataError
from protocon.estimator.sample_kinds import FeatureSpread, Kind, as_array, as_levels, path_store
from protocon.networks.network import Network
from protocon.runs.trained import TrainedRun

_VALUES = 2**24
"""Values per batch: limits the memory of prediction."""


@dataclass(frozen=True)
class Said:
    """Outputs for n samples."""

    probabilities: np.ndarray
    """float64 (n, C)."""
    projections: np.ndarray
    """Unit norm, float64 (n, d)."""


def projection_width(network: Network) -> int:
    """d: of the projector, or of the encoder where the method needs no projector."""
    if network.projector is None:
        return network.classifier.in_features
    return int(network.projector[-1].out_features)  # type: ignore[arg-type]


def with_spread(network: Network, spread: FeatureSpread) -> Network:
    """A float64 copy that takes features as they are, of a network that was trained on centred and scaled ones.

    It got z = (x − m) / s and normalises z to (z − μ) / σ, which is (x − (m + s μ)) / (s σ). In float64, what is said
    of a sample does not depend on which samples are asked about together.
    """
    own = copy.deepcopy(network).double()
    mean, std = own.mean.numpy(), own.std.numpy()
    own.mean = torch.from_numpy(spread.mean + spread.std * mean)
    own.std = torch.from_numpy(spread.std * std)
    return own


@torch.no_grad()
def ask(run: TrainedRun, X: Any, kind: Kind, *, scale: float, network: Network) -> Said:
    """Probabilities and projections of X, batch by batch.

    Args:
        run: what to ask.
        X: samples of the kind that the run was trained on.
        kind: which that is.
        scale: of pixels, as training settled it.
        network: the run's, in float64 for features.
    """
    batches = {"features": _feature_batches, "images": _image_batches, "files": _file_batches}[kind]
    parts = [_say(network, inputs) for inputs in batches(run, X, scale)]
    return Said(
        np.concatenate([part.probabilities for part in parts]), np.concatenate([part.projections for part in parts])
    )


def _say(network: Network, inputs: Tensor) -> Said:
    spread = (1, -1, 1, 1) if inputs.dim() == 4 else (1, -1)
    features = network.encoder((inputs - network.mean.view(spread)) / network.std.view(spread))
    logits = network.classifier(features)
    projected = features if network.projector is None else network.projector(features)
    return Said(logits.double().softmax(-1).numpy(), F.normalize(projected.double(), dim=-1).numpy())


def _feature_batches(run: TrainedRun, rows: np.ndarray, scale: float) -> Iterator[Tensor]:  # noqa: ARG001
    for part in _parts(len(rows), rows.shape[1]):
        yield torch.from_numpy(np.array(rows[part], dtype=np.float64))


def _image_batches(run: TrainedRun, X: Any, scale: float) -> Iterator[Tensor]:
    clean = build_views(run.config, shape=run.shape, feature_std=None).clean
    images = as_array(X)
    for part in _parts(len(images), int(np.prod(images.shape[1:]))):
        levels = as_levels(images[part], scale)
        if levels.shape[1] != run.shape[0]:
            raise DataError(f"Images with {levels.shape[1]} channels; this classifier was fitted on {run.shape[0]}.")
        yield clean(resize_images(torch.from_numpy(levels), run.shape[-1], squash=run.config.data.fit == "squash"))


def _file_batches(run: TrainedRun, X: Any, scale: float) -> Iterator[Tensor]:  # noqa: ARG001
    clean = build_views(run.config, shape=run.shape, feature_std=None).clean
    store = path_store(X)
    grey, squash = run.shape[0] == 1, run.config.data.fit == "squash"
    names = [entry.path for entry in store.files()]
    for part in _parts(len(names), int(np.prod(run.shape))):
        decoded = []
        for name in names[part]:
            with store.open(name) as file:
                full = store.full_name(name)
                decoded.append(decode_image(file, size=run.shape[-1], grey=grey, squash=squash, name=full))
        yield clean(torch.stack(decoded))


def _parts(count: int, values: int) -> Iterator[slice]:
    rows = max(1, min(512, _VALUES // max(1, values)))
    return (slice(start, start + rows) for start in range(0, count, rows))
