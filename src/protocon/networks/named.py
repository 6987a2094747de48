"""Encoders by the names that people use: `--encoder dinov2-small` instead of timm's name, a size and a switch.

Those of PyPI packages (lite0, lite1, lite2) need no download. The others' weights are fetched by timm from the Hugging
Face Hub; where there is no connection, a file that was fetched elsewhere does as well.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Named:
    """An encoder with a short name."""

    model: str
    """timm's name, with the weights that are meant."""
    side: int
    """Images are resized to this many pixels."""
    any_size: bool = False
    """A vision transformer made for another size: its positions are interpolated."""
    packaged: bool = False
    """Whether a PyPI package brings its weights."""


NAMED: dict[str, Named] = {
    "dinov2-small": Named("vit_small_patch14_dinov2.lvd142m", 224, any_size=True),
    "dinov2-base": Named("vit_base_patch14_dinov2.lvd142m", 224, any_size=True),
    "dinov3-small": Named("vit_small_patch16_dinov3.lvd1689m", 256),
    "dinov3-base": Named("vit_base_patch16_dinov3.lvd1689m", 256),
    "clip-base": Named("vit_base_patch16_clip_224.openai", 224),
    "convnext-tiny": Named("convnext_tiny.fb_in22k", 224),
    "convnext-tiny-dinov3": Named("convnext_tiny.dinov3_lvd1689m", 256),
    "lite0": Named("tf_efficientnet_lite0", 128, packaged=True),
    "lite1": Named("tf_efficientnet_lite1", 160, packaged=True),
    "lite2": Named("tf_efficientnet_lite2", 192, packaged=True),
}


def find_model(model: str) -> Named | None:
    """The entry with timm's name."""
    return next((named for named in NAMED.values() if named.model == model), None)


def how_to_fetch(model: str) -> str:
    """What to do where timm cannot reach the weights."""
    short = next((name for name, named in NAMED.items() if named.model == model), model)
    return (
        f"On a computer with a connection: hf download timm/{model} model.safetensors --local-dir . "
        f"(pip install huggingface_hub); bring the file here and add --encoder {short} --weights model.safetensors"
    )
