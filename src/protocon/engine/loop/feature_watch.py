"""How good an encoder's features are while no labels train it: neighbours of known class, and spread."""

from collections.abc import Callable
from typing import cast

import numpy as np
import torch
from torch import Tensor, nn

from protocon.core.knn import knn_scores
from protocon.data.imageset import DataBundle, ImageSet
from protocon.networks.network import Network
from protocon.types import Outputs

_BANK = 5000
_QUERIES = 2000
_MIN_LABELS = 10
"""Fewer known classes than this say nothing."""


class FeatureView(nn.Module):
    """A network's features in place of its logits.

    Args:
        network: shared, not copied.
    """

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network
        self.train(network.training)  # the mode is the network's

    def forward(self, x: Tensor) -> Outputs:
        """Features (n, D), and no projection."""
        features = cast(Network, self.network).features(x)
        return Outputs(features, features[:, :0])


def watch_features(bundle: DataBundle, predict: Callable[[ImageSet], Outputs]) -> dict[str, float]:
    """The spread of the features, and the accuracy of nearest neighbours where classes are known.

    Test images are found among training images; without a test set each training image of known class among the
    others. No label has any influence on training.

    Args:
        bundle: the data.
        predict: features of a set, as `logits`.
    """
    train = bundle.train
    known = np.flatnonzero(train.labels >= 0)
    chosen = _spaced(known, _BANK) if len(known) >= _MIN_LABELS else _spaced(np.arange(len(train)), _QUERIES)
    bank = predict(train.subset(chosen)).logits
    row = {"feature_spread": feature_spread(bank)}
    if len(known) < _MIN_LABELS or len(np.unique(train.labels[known])) < 2:
        return row
    labels, classes = torch.from_numpy(train.labels[chosen].copy()), len(train.class_names)
    if bundle.test is not None:
        places = _spaced(np.flatnonzero(bundle.test.labels >= 0), _QUERIES)
        wanted = torch.from_numpy(bundle.test.labels[places].copy())
        scores = knn_scores(predict(bundle.test.subset(places)).logits, bank, labels, classes=classes)
    else:
        wanted, scores = labels, knn_scores(bank, bank, labels, classes=classes, own=True)
    return row | {"knn_accuracy": float((scores.argmax(1) == wanted).double().mean())}


def feature_spread(features: Tensor) -> float:
    """1 − ‖mean‖² of the features at unit length: near 0 where all images look the same."""
    unit = torch.nn.functional.normalize(features.double(), dim=-1)
    return float(1.0 - unit.mean(0).square().sum())


def _spaced(places: np.ndarray, count: int) -> np.ndarray:
    """At most so many of them, evenly spaced."""
    if len(places) <= count:
        return places
    return np.asarray(places[np.linspace(0, len(places) - 1, count).astype(np.int64)])
