"""Encoders by name: `wrn-28-2`, `mlp-512`, `none`, or any timm model."""

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from torch import Tensor, nn

from protocon.base.parts import Part, Parts, width
from protocon.errors import ConfigError
from protocon.networks.colours import CHANNELS, WithColours
from protocon.networks.efficientnet_lite import MEAN, STD, EfficientNetLite, lite_size
from protocon.networks.named import NAMED, find_model, how_to_fetch
from protocon.networks.pooled_blocks import PooledBlocks
from protocon.networks.two_looks import TwoLooks
from protocon.networks.weights import find_weights, load_encoder, stored_statistics
from protocon.networks.wideresnet import WideResNet, parse_name

_MLP = re.compile(r"mlp-(\d+)")


@dataclass(frozen=True)
class Encoder:
    """An encoder f and what is needed to use it."""

    module: nn.Module
    features: int
    """Length of a feature vector f(x)."""
    mean: tuple[float, ...] | None = None
    """Channel means that its weights were trained with; None if it was not pretrained."""
    std: tuple[float, ...] | None = None
    parts: Parts = ()
    """What features consist of; empty where there are only the encoder's own."""


class HiddenLayer(nn.Module):
    """One hidden layer on given embeddings, in place of fine-tuning the encoder."""

    def __init__(self, inputs: int, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(inputs, width)
        self.activation = nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        """What the heads see."""
        out: Tensor = self.activation(self.linear(x))
        return out


def build_encoder(
    name: str,
    *,
    input_shape: tuple[int, ...],
    pretrained: bool = False,
    weights: Path | None = None,
    weights_sha256: str | None = None,
    norm_momentum: float = 0.1,
    pooled_blocks: int = 0,
    second_look: float = 0.0,
    colours: bool = False,
    frozen: bool = False,
) -> Encoder:
    """Build the encoder called `name` for inputs of this shape.

    Args:
        name: `wrn-DEPTH-WIDTH`, a timm model, or for embeddings `none` or `mlp-WIDTH`.
        input_shape: (channels, height, width) of images or (length,) of embeddings.
        pretrained: ask timm for its weights.
        weights: a local file with weights instead, or `package:NAME`.
        weights_sha256: of that file; another one is refused.
        norm_momentum: BatchNorm's, for wide ResNets.
        pooled_blocks: last blocks of an EfficientNet whose pooled outputs stand beside its features.
        second_look: share of an image's own statistics in the last norm of an EfficientNet-Lite that looks twice; 0
            is one look.
        colours: whether the colours of an image stand beside its features.
        frozen: it will not be trained, and its weights come from a file: it needs no way to draw new ones.
    """
    lite = lite_size(name) if frozen and not pretrained and len(input_shape) == 3 else None
    if lite is None:
        encoder = _build(name, input_shape, pretrained, norm_momentum)
    else:
        channels = input_shape[0]
        module = EfficientNetLite(lite, in_channels=channels)
        encoder = Encoder(module, module.num_features, (MEAN,) * channels, (STD,) * channels)
    if weights is not None:
        file = find_weights(weights, sha256=weights_sha256)
        load_encoder(encoder.module, file)
        if (own := stored_statistics(file, channels=input_shape[0])) is not None:
            encoder = replace(encoder, mean=own[0], std=own[1])
    seen = _looks(encoder, name, pooled_blocks=pooled_blocks, second_look=second_look)
    return _with_colours(seen, channels=input_shape[0]) if colours else seen


def _looks(encoder: Encoder, name: str, *, pooled_blocks: int, second_look: float) -> Encoder:
    """The encoder with pooled blocks, or two looks, or as it is."""
    if not pooled_blocks and not second_look:
        return encoder
    wide: PooledBlocks | TwoLooks
    if not second_look:
        wide = PooledBlocks(encoder.module, pooled_blocks)
    elif isinstance(encoder.module, EfficientNetLite):
        wide = TwoLooks(encoder.module, blocks=pooled_blocks, share=second_look)
    else:
        raise ConfigError(
            f"network.second_look={second_look:g} is for a frozen EfficientNet-Lite with weights of a package or a "
            f"file, and the encoder is {name}; set network.second_look=0, or leave --encoder out"
        )
    return replace(encoder, module=wide, features=wide.num_features, parts=wide.parts)


def _with_colours(encoder: Encoder, *, channels: int) -> Encoder:
    if channels != CHANNELS or encoder.mean is None or encoder.std is None:
        what = f"these have {channels} channels" if channels != CHANNELS else "this encoder's weights are random"
        raise ConfigError(
            f"network.colour_shares=true is for images in colour and an encoder with weights, but {what}; leave it out"
        )
    parts = encoder.parts or (Part(encoder.features),)
    wide = WithColours(encoder.module, parts, mean=encoder.mean, std=encoder.std)
    return replace(encoder, module=wide, features=width(wide.parts), parts=wide.parts)


def _build(name: str, input_shape: tuple[int, ...], pretrained: bool, norm_momentum: float) -> Encoder:
    hidden = _MLP.fullmatch(name)
    if name == "none" or hidden:
        if len(input_shape) != 1:
            raise ConfigError(
                f"encoder {name!r} is for embeddings, but the data are images of shape {input_shape}; "
                "choose an image encoder such as wrn-28-2 or resnet50"
            )
        if hidden:
            return Encoder(HiddenLayer(input_shape[0], int(hidden[1])), int(hidden[1]))
        return Encoder(nn.Identity(), input_shape[0])
    if len(input_shape) != 3:
        raise ConfigError(
            f"encoder {name!r} takes images, but the data are embeddings of length {input_shape[0]}; "
            "choose none or mlp-512"
        )
    size = parse_name(name)
    if size is not None:
        wide = WideResNet(*size, in_channels=input_shape[0], norm_momentum=norm_momentum)
        return Encoder(wide, wide.num_features)
    return _from_timm(name, input_shape[0], pretrained)


def _from_timm(name: str, channels: int, pretrained: bool) -> Encoder:
    from timm import create_model, list_models  # takes seconds to import

    if not list_models(name.split(".")[0]):
        near = list_models(f"*{name.split('.')[0][:6]}*")[:5]
        raise ConfigError(
            f"unknown encoder {name!r}; expected one of {', '.join(NAMED)}; wrn-DEPTH-WIDTH, mlp-WIDTH, none; or a "
            "timm model" + (f" (near it: {', '.join(near)})" if near else "")
        )
    named = find_model(name)
    options: dict[str, Any] = {"dynamic_img_size": True} if named is not None and named.any_size else {}
    try:
        module = create_model(name, pretrained=pretrained, num_classes=0, in_chans=channels, **options)
    except Exception as error:
        if not pretrained:
            raise
        raise ConfigError(
            f"timm could not fetch the pretrained weights of {name} ({type(error).__name__}: {str(error)[:300]}). "
            f"{how_to_fetch(name)}. Or leave --encoder out for the encoder that is installed"
        ) from error
    settings: dict[str, Any] = dict(getattr(module, "pretrained_cfg", None) or {})
    channel_mean = tuple(settings.get("mean", (0.5,) * channels))
    channel_std = tuple(settings.get("std", (0.5,) * channels))
    if len(channel_mean) != channels:
        channel_mean = (sum(channel_mean) / len(channel_mean),) * channels
        channel_std = (sum(channel_std) / len(channel_std),) * channels
    return Encoder(module, cast(int, module.num_features), channel_mean, channel_std)
