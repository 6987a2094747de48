"""Images as a frozen encoder sees them: each sample is the features of its views."""

import copy
from typing import Self

import numpy as np
import torch
from torch import Tensor

from protocon.data.files.digests import content_of
from protocon.data.imageset import ImageSet
from protocon.features.feature_table import FeatureTable

_BLOCK = 1024
"""Samples that are read at a time."""


class CachedViews(ImageSet):
    """An image set whose samples are (V, D) features: the clean view first, then weak ones, then strong ones.

    Ids, labels and class names are the images' own, so that a split of the images is one of these.

    Args:
        images: that the features are of.
        features: (N, V, D).
        table: where all of them are kept, if anywhere.
    """

    def __init__(self, images: ImageSet, features: Tensor, table: FeatureTable | None = None) -> None:
        super().__init__(name=images.name, class_names=images.class_names, labels=images.labels, ids=images.ids)
        self._images = images
        self._features = features
        self.table = table
        """Where all of them are kept, if anywhere."""
        self._rows: np.ndarray | None = None
        self.shape = tuple(features.shape[1:])

    @property
    def nbytes(self) -> int:
        """Bytes of all features."""
        return len(self) * int(np.prod(self.shape)) * self._features.element_size()

    @property
    def tensor(self) -> Tensor:
        """All features (N, V, D); of the whole set this is the mapped file itself."""
        return self._features if self._rows is None else self._features[torch.from_numpy(self._rows)]

    def read(self, indices: np.ndarray) -> Tensor:
        """Features (n, V, D) of these samples, as they are kept: half or single precision."""
        indices = np.asarray(indices, dtype=np.int64)
        return self._features[torch.from_numpy(indices if self._rows is None else self._rows[indices])]

    def subset(self, indices: np.ndarray) -> Self:
        """The samples at these positions, in this order, without copying their features."""
        chosen = copy.copy(super().subset(indices))
        indices = np.asarray(indices, dtype=np.int64)
        chosen.table = None
        chosen._rows = indices if self._rows is None else self._rows[indices]
        return chosen

    def content(self) -> str:
        """That of the images."""
        return self._images.content() if self._rows is None else f"{self._images.content()}:{content_of(self._rows)}"

    def with_features(self, features: Tensor) -> "CachedViews":
        """The same samples, all of them, with other features (N, V, D)."""
        return CachedViews(self._images, features)

    def clean(self, most: int = 20_000) -> Tensor:
        """Clean features (n, D) of up to `most` samples, spread evenly."""
        chosen = np.unique(np.linspace(0, len(self) - 1, min(len(self), most)).astype(np.int64))
        return self._features[:, 0][torch.from_numpy(chosen)].float()

    def mean(self) -> Tensor:
        """Features of each sample, mean over its views, (N, D)."""
        rows = torch.empty(len(self), self.shape[-1])
        for start in range(0, len(self), _BLOCK):
            part = np.arange(start, min(start + _BLOCK, len(self)))
            rows[start : start + len(part)] = self.read(part).float().mean(1)
        return rows

    def statistics(self) -> tuple[Tensor, Tensor]:
        """Mean and standard deviation of each clean feature, (D,) each."""
        clean = self.clean().double()
        return clean.mean(0).float(), clean.std(0, correction=0).float().clamp(min=1e-6)
