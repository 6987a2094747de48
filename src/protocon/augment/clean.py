"""The clean view: whole images as they are stored, which is what networks are evaluated on."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from protocon.augment.views import CentreView

CleanView = Callable[[Tensor], Tensor]
"""Samples as stored → what the network takes, without draws."""


@dataclass(frozen=True)
class _Clean:
    """Whole images as they are stored, which is at the network's size; keys are taken and ignored.

    Its name is part of the key under which features are cached.
    """

    fixed: ClassVar[bool] = True
    """There are no draws: the same image always looks the same."""

    def __call__(self, images: Tensor, keys: Tensor) -> Tensor:
        return CentreView(images.shape[-1])(images, keys)


CLEAN: Callable[[Tensor, Tensor], Tensor] = _Clean()


def clean_view_of(shape: tuple[int, ...]) -> CleanView:
    """The clean view of images (C, H, W), or of embeddings (D,), which are taken as they are."""
    if len(shape) == 1:
        return lambda rows: rows
    # An image's clean view has no draws, so any keys will do.
    return lambda images: CLEAN(images, torch.zeros(len(images), dtype=torch.int64))
