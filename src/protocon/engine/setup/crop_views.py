"""The random crops that a method asks for besides weak and strong views."""

from protocon.augment.randaugment import RandAugmentView
from protocon.augment.simclr import SimCLRView
from protocon.augment.solarised import SolarisedView
from protocon.augment.views import RandomCropFlip
from protocon.engine.setup.view_factory import View, Views, views_engine
from protocon.methods import Method
from protocon.methods.needs import Crops
from protocon.settings.auto import SMALL_SIDE
from protocon.settings.resolved_config import ResolvedConfig


def build_crops(config: ResolvedConfig, method: Method, views: Views, shape: tuple[int, ...]) -> list[list[View]]:
    """A view of each crop, for each entry of the method's `crops`.

    Args:
        config: without `auto`.
        method: asks for crops.
        views: what embeddings get instead: they have no pixels to crop.
        shape: of an image (C, H, W) or an embedding (D,).
    """
    if len(shape) == 1:
        return [[views.weak if crops.kind == "weak" else views.strong] * crops.count for crops in method.crops]
    return [[_crop(config, crops, number, side=shape[-1]) for number in range(crops.count)] for crops in method.crops]


def _crop(config: ResolvedConfig, crops: Crops, number: int, *, side: int) -> View:
    """The crop of this number, of a view's kind, whatever the weak view of these images is."""
    views, flip, engine = config.views, config.views.flip, views_engine(config.views.engine)
    size = crops.side(side)
    weak = RandomCropFlip(size, flip=flip, scale=crops.scale, engine=engine)
    if crops.kind == "weak":
        return weak
    if views.strong == "simclr" or crops.kind == "coloured":
        # SimCLR blurs large images only.
        blur = (crops.blur[number] if crops.blur else 0.5) if size > SMALL_SIDE else 0.0
        strength = views.simclr_strength if crops.strength is None else crops.strength
        view = SimCLRView(size, strength=strength, scale=crops.scale, flip=flip, blur=blur, engine=engine)
        chance = crops.solarise[number] if crops.solarise else 0.0
        return SolarisedView(view, chance) if chance else view
    return RandAugmentView(
        weak=weak,
        ops=views.operations,
        probability=views.operation_probability,
        cutout=views.cutout,
        engine=engine,
    )
