"""The weak, strong and clean view that a config asks for."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from protocon.augment.batches import Engine
from protocon.augment.clean import CLEAN, CleanView, clean_view_of
from protocon.augment.features import FeatureView
from protocon.augment.fused import kernels
from protocon.augment.randaugment import RandAugmentView
from protocon.augment.simclr import SimCLRView
from protocon.augment.views import RandomCropFlip, WeakView
from protocon.errors import ConfigError
from protocon.features.picked_view import PickedView, clean_view
from protocon.settings.auto import SMALL_SIDE
from protocon.settings.resolved_config import ResolvedConfig

View = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class _Mirrored:
    """Whole images, left and right exchanged."""

    fixed: ClassVar[bool] = True
    """There are no draws."""

    def __call__(self, images: Tensor, keys: Tensor) -> Tensor:
        return CLEAN(images, keys).flip(-1)


MIRRORED: View = _Mirrored()


@dataclass(frozen=True)
class Views:
    """Three ways to look at stored images."""

    weak: View
    strong: View
    clean: CleanView


def build_views(config: ResolvedConfig, *, shape: tuple[int, ...], feature_std: Tensor | None) -> Views:
    """Views for images (C, H, W), or for embeddings (D,) with their spread per feature.

    Args:
        config: without `auto`.
        shape: of a sample: (C, H, W) or (D,).
        feature_std: standard deviation of each feature of embeddings; None for ones.
    """
    views = config.views
    if len(shape) == 1:
        spread = torch.ones(shape[0]) if feature_std is None else feature_std
        return Views(
            FeatureView(noise=views.weak_noise, dropout=views.weak_dropout, std=spread),
            FeatureView(noise=views.strong_noise, dropout=views.strong_dropout, std=spread),
            clean_view_of(shape),
        )
    weak, strong = _image_views(config, size=shape[-1])
    return Views(weak, strong, clean_view_of(shape))


def _image_views(config: ResolvedConfig, *, size: int) -> tuple[View, View]:
    """The weak and the strong view of images of this side."""
    views, flip = config.views, config.views.flip
    engine = views_engine(views.engine)
    weak = (
        RandomCropFlip(size, flip=flip, scale=(views.crop_scale, 1.0), engine=engine)
        if views.weak == "crop"
        else WeakView(flip=flip, translate=views.translate, engine=engine)
    )
    strong: View
    if views.strong == "simclr":
        # SimCLR blurs large images only.
        blur = 0.5 if size > SMALL_SIDE else 0.0
        strong = SimCLRView(size, strength=views.simclr_strength, flip=flip, blur=blur, engine=engine)
    else:
        strong = RandAugmentView(
            weak=weak,
            ops=views.operations,
            probability=views.operation_probability,
            cutout=views.cutout,
            engine=engine,
        )
    return weak, strong


def views_engine(name: str) -> Engine:
    """The engine of this name, or an error where it is not installed."""
    if name == "numba" and not kernels.available():
        raise ConfigError(
            "views.engine is numba, which is not installed; install it with `pip install protocon[fast]`, or set "
            "views.engine=torch"
        )
    return "numba" if name == "numba" else "torch"


def image_views(config: ResolvedConfig, *, shape: tuple[int, ...]) -> list[View]:
    """What is cached of every image under a frozen encoder: clean, mirrored, then the weak and the strong views."""
    weak, strong = _image_views(config, size=shape[-1])
    views = config.views
    mirrored, weaks = [MIRRORED] * _mirrors(config), [weak] * views.cached_weak
    return [CLEAN, *mirrored, *weaks, *[strong] * views.cached_strong]


def _mirrors(config: ResolvedConfig) -> int:
    """How many mirrored views are cached: one or none."""
    return int(config.views.cached_mirror and config.views.flip)


def views_of_features(config: ResolvedConfig, *, components: int) -> Views:
    """Views drawn from cached ones, with noise in units of the components' mean spread, which is 1.

    The weak view is the clean one with a little noise: a frozen encoder judges whole images best. Strong views are
    drawn from all others: a cropped image with noise and dropout is one too, and the more there are the better.
    """
    views, std = config.views, torch.ones(components)
    drawn = views.cached_weak + views.cached_strong
    # Where there are no cropped views, the whole image and its mirror image are perturbed.
    others = tuple(range(1 + _mirrors(config), 1 + _mirrors(config) + drawn)) or tuple(range(1 + _mirrors(config)))
    return Views(
        PickedView((0,), FeatureView(noise=views.weak_noise, dropout=views.weak_dropout, std=std)),
        PickedView(others, FeatureView(noise=views.strong_noise, dropout=views.strong_dropout, std=std)),
        clean_view,
    )
