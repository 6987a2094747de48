"""The features of a pre-trained encoder as a map: two coordinates for each of some images, for the report."""

import warnings
from typing import Any

import numpy as np

from protocon.engine.loop.feature_watch import FeatureView
from protocon.engine.loop.trainer import Trainer

_IMAGES = 1000
_COMPONENTS = 30
_MIN_IMAGES = 10
"""Of fewer images a map says nothing."""


def feature_map(trainer: Trainer) -> dict[str, Any]:
    """Ids, classes where known, and places of up to 1,000 evenly spaced training images. All processes take part."""
    train = trainer.session.bundle.train
    chosen = np.unique(np.linspace(0, len(train) - 1, min(len(train), _IMAGES)).astype(np.int64))
    some = train.subset(chosen)
    features = trainer.predict(FeatureView(trainer.evaluated), some).logits.double().numpy()
    if len(some) < _MIN_IMAGES:
        return {}
    places = _places(features)
    names = train.class_names
    known = [names[int(label)] if label >= 0 else None for label in some.labels]
    return {"ids": list(some.ids), "classes": known, "places": np.round(places, 3).tolist()}


def _places(features: np.ndarray) -> np.ndarray:
    """t-SNE of unit-length features from their first principal components on; the same features, the same places."""
    from sklearn.decomposition import PCA  # imported here: it takes a second, and only this needs it
    from sklearn.manifold import TSNE

    unit = features / np.maximum(np.linalg.norm(features, axis=1, keepdims=True), 1e-12)
    size = min(_COMPONENTS, unit.shape[1], len(unit) - 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # features that are all the same have no variance to share out
        reduced = PCA(size, svd_solver="full").fit_transform(unit)
        if not np.ptp(reduced):
            return np.zeros((len(unit), 2))
        perplexity = min(30.0, (len(unit) - 1) / 3)
        return np.asarray(TSNE(2, perplexity=perplexity, init="pca", random_state=0).fit_transform(reduced))
