"""The whole training set as features, for methods that look at all of it before training."""

import numpy as np
import torch

from protocon.core.feature_space import feature_space
from protocon.engine.setup.session import Session
from protocon.errors import ConfigError
from protocon.methods import Samples

_DIMENSIONS = 256
_MAX_SIDE = 32
"""Pixels of images up to this side say something of their class; those of larger ones need an encoder."""


def whole_set(session: Session) -> Samples:
    """Components of a frozen encoder's features; of embeddings; or of the pixels of small images."""
    samples, split = session.samples, session.split
    if len(samples.shape) == 3 and samples.shape[-1] > _MAX_SIDE:
        raise ConfigError(
            f"method {session.config.method_name} learns from features that do not change, and the data are images of "
            f"{samples.shape[-1]} pixels; add --frozen, or choose a method that trains an encoder (--method protocon)"
        )
    rows = samples.read(np.arange(len(samples)))
    if len(samples.shape) != 2:  # not views of components already
        plain = rows.flatten(1).numpy().astype(np.float32)
        rows = torch.from_numpy(feature_space(plain, _DIMENSIONS)(plain))[:, None]
    return Samples(
        views=rows,
        labelled=torch.from_numpy(split.labelled.copy()),
        targets=torch.from_numpy(split.labels.copy()),
        unlabelled=torch.from_numpy(split.unlabelled.copy()),
    )
