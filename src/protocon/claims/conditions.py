"""What can be done to data before labels are drawn from it: wrong labels, rare classes."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch

from protocon.base.draws import permutation, uniform
from protocon.data.imageset import ArrayImages, DataBundle, ImageSet
from protocon.errors import DataError

_NOISE, _OTHER_CLASS, _TAIL = 302, 303, 304  # what draws are for
PLAIN, NOISY, LONG_TAIL = "plain", "noisy labels", "long tail"


def plain(bundle: DataBundle) -> DataBundle:
    """The data as they are."""
    return bundle


NOISE = 0.3
"""Share of the training labels that noise replaces."""
IMBALANCE = 10
"""Images of the first class per image of the last in long-tailed data."""


def noisy(bundle: DataBundle) -> DataBundle:
    """A share of the training labels replaced by another class, each as likely; the test labels stay true."""
    train, classes = _array(bundle.train), len(bundle.train.class_names)
    rows = torch.arange(len(train))
    hit = uniform(rows, _NOISE)[:, 0].numpy() < NOISE
    shift = 1 + (uniform(rows, _OTHER_CLASS)[:, 0].numpy() * (classes - 1)).astype(np.int64)
    labels = np.where(hit, (train.labels + shift) % classes, train.labels)
    changed = ArrayImages(
        train.tensor, labels, train.class_names, name=train.name, ids=train.ids, content=train.content()
    )
    return replace(bundle, train=changed)


def long_tailed(bundle: DataBundle) -> DataBundle:
    """Training images of class c thinned out to a share of 10^(−c / (C − 1)); the test set stays as it is."""
    train, classes = _array(bundle.train), len(bundle.train.class_names)
    kept = []
    for number in range(classes):
        members = np.flatnonzero(train.labels == number)
        share = IMBALANCE ** (-number / (classes - 1))
        kept.append(members[permutation(len(members), _TAIL, number)[: max(1, round(share * len(members)))]])
    return replace(bundle, train=train.subset(np.sort(np.concatenate(kept))))


CONDITIONS: dict[str, Callable[[DataBundle], DataBundle]] = {
    PLAIN: plain,
    NOISY: noisy,
    LONG_TAIL: long_tailed,
}
"""Each condition by its name."""


def _array(images: ImageSet) -> ArrayImages:
    if not isinstance(images, ArrayImages):
        raise DataError(f"{images.name}: claims are tested on images in memory, such as digits and fashion-mnist")
    return images
