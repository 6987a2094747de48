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
from protocon.features.picks import PickedView, clean_view

View = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class _Clean:
    """Whole images as they are stored, which is at the network's size; keys are taken and ignored."""

    def __call__(self, images: Tensor, keys: Tensor) -> Tensor:
        return CentreView(images.shape[-1])(images, keys)


CLEAN: View = _Clean()


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
    weak, strong = _image_views(config, size=shape[-1])
    # An image's clean view has no draws, so any keys will do.
    return Views(weak, strong, lambda images: CLEAN(images, torch.zeros(len(images), dtype=torch.int64)))


def _image_views(config: RunConfig, *, size: int) -> tuple[View, View]:
    """The weak and the strong view of images of this side."""
    views, flip = config.views, bool(config.views.flip)
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
    return weak, strong


def image_views(config: RunConfig, *, shape: tuple[int, ...]) -> list[View]:
    """What is cached of every image under a frozen encoder: clean, then the weak views, then the strong ones."""
    weak, strong = _image_views(config, size=shape[-1])
    views = config.views
    return [CLEAN, *[weak] * int(views.cached_weak), *[strong] * int(views.cached_strong)]


def views_of_features(config: RunConfig, *, std: Tensor) -> Views:
    """Views drawn from cached ones, with noise in units of each feature's spread.

    The clean view counts as a weak one, and where no strong view is cached, noise and dropout make one of a weak one.
    """
    views = config.views
    weak = tuple(range(1 + int(views.cached_weak)))
    strong = tuple(range(len(weak), len(weak) + int(views.cached_strong)))
    return Views(
        PickedView(weak, FeatureView(noise=views.weak_noise, dropout=views.weak_dropout, std=std)),
        PickedView(strong or weak, FeatureView(noise=views.strong_noise, dropout=views.strong_dropout, std=std)),
        clean_view,
    )
