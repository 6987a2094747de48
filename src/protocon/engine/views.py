"""The weak, strong and clean view that a config asks for."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from protocon.augment.features import FeatureView
from protocon.augment.randaugment import RandAugmentView
from protocon.augment.simclr import SimCLRView
from protocon.augment.views import CentreView, RandomCropFlip, WeakView
from protocon.auto import SMALL_SIDE
from protocon.config import RunConfig

View = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Views:
    """Three ways to look at stored images."""

    weak: View
    strong: View
    clean: Callable[[Tensor], Tensor]


def build_views(config: RunConfig, *, shape: tuple[int, ...], feature_std: Tensor | None) -> Views:
    """Views for images (C, H, W), or for embeddings (D,) with their spread per feature."""
    views = config.views
    if len(shape) == 1:
        spread = torch.ones(shape[0]) if feature_std is None else feature_std
        return Views(
            FeatureView(noise=views.weak_noise, dropout=views.weak_dropout, std=spread),
            FeatureView(noise=views.strong_noise, dropout=views.strong_dropout, std=spread),
            lambda images: images,
        )
    size, flip = shape[-1], bool(views.flip)
    weak = RandomCropFlip(size, flip=flip) if views.weak == "crop" else WeakView(flip=flip, translate=views.translate)
    strong: View
    if views.strong == "simclr":
        # SimCLR blurs large images only.
        blur = 0.5 if size > SMALL_SIDE else 0.0
        strong = SimCLRView(size, strength=views.simclr_strength, flip=flip, blur=blur)
    else:
        strong = RandAugmentView(
            weak=weak, ops=views.operations, probability=views.operation_probability, cutout=views.cutout
        )
    centre = CentreView(size)
    # An image's clean view has no draws, so any keys will do.
    return Views(weak, strong, lambda images: centre(images, torch.zeros(len(images), dtype=torch.int64)))
