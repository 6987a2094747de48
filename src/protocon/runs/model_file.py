"""The file of a trained network: weights as safetensors, and as metadata what is needed to use them.

Runs, classifiers and exports all write it here and read it here. What else they keep in it goes by names of its own.
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from protocon.base.parts import Part
from protocon.errors import ProtoConError, RunError
from protocon.methods import METHODS
from protocon.networks.component_space import Kind, empty_space
from protocon.networks.encoders import build_encoder
from protocon.networks.frozen import stack, with_space_names
from protocon.networks.network import MIN_CLASSES, Network
from protocon.runs.build_network import build_network, trained_part
from protocon.settings.config import validate
from protocon.settings.legacy import with_epochs, with_old_values
from protocon.settings.resolved_config import ResolvedConfig, resolved_config

METADATA = "protocon"
"""Key of the facts in the file's metadata."""
_EXTRA = "estimator."
"""Begins the names of tensors that are not the network's; `ProtoConClassifier` was the first to have some."""


def model_bytes(
    network: nn.Module,
    *,
    config: ResolvedConfig,
    class_names: tuple[str, ...],
    shape: tuple[int, ...],
    facts: Mapping[str, Any] | None = None,
    tensors: Mapping[str, Tensor] | None = None,
    plain: Callable[[Any], Any] | None = None,
) -> bytes:
    """The content of a model file.

    Args:
        network: from images (or embeddings) to classes.
        config: without `auto`.
        class_names: in the order of the classifier's outputs.
        shape: of an image (C, H, W) or an embedding (D,).
        facts: what else is known, by names other than these three.
        tensors: what else is kept, by name.
        plain: turns values of `facts` that JSON cannot hold into ones that it can, or raises TypeError.
    """
    known = {
        "config": config.model_dump(mode="json"),
        "class_names": list(class_names),
        "shape": list(shape),
        **(facts or {}),
    }
    # Cloned where several names share memory: safetensors stores each tensor on its own.
    own = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in network.state_dict().items()}
    own |= {_EXTRA + name: tensor.detach().cpu().contiguous() for name, tensor in (tensors or {}).items()}
    return save(own, metadata={METADATA: json.dumps(known, default=plain)})


def read_model(path: Path) -> tuple[Network, ResolvedConfig, dict[str, Any], dict[str, Tensor]]:
    """The network, its settings, all facts, and the tensors that are not the network's; errors say what is wrong."""
    try:
        with safe_open(path, framework="pt") as content:
            facts = json.loads((content.metadata() or {})[METADATA])
            tensors = {name: content.get_tensor(name) for name in content.keys()}  # noqa: SIM118
        own = {name: tensor for name, tensor in tensors.items() if not name.startswith(_EXTRA)}
        extra = {name.removeprefix(_EXTRA): t for name, t in tensors.items() if name.startswith(_EXTRA)}
        config = resolved_config(validate(with_epochs(with_old_values(facts["config"]))))
        return _rebuild(config, facts, own), config, facts, extra
    except (LookupError, ValueError, TypeError, AttributeError, RuntimeError, OSError, *_FOREIGN) as error:
        raise RunError(f"{path} is damaged or not a model of this package: {str(error)[:300]}") from error


_FOREIGN = (SafetensorError, ProtoConError)


def _rebuild(config: ResolvedConfig, facts: dict[str, Any], tensors: dict[str, Tensor]) -> Network:
    """The network that a model file describes."""
    shape, names = tuple(facts["shape"]), tuple(facts["class_names"])
    if not shape or not all(type(side) is int and 0 < side < 2**20 for side in shape):
        raise ValueError(f"an input shape of {shape}")
    if (len(names) < 2 and METHODS[config.method_name].uses_labels) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"class names {names[:5]}")
    own, frozen = config.network, config.network.frozen
    encoder = build_encoder(
        own.encoder,
        input_shape=shape,
        pooled_blocks=own.pooled_blocks,
        second_look=own.second_look,
        colours=own.colour_shares,
        frozen=frozen,
    )
    if frozen:
        tensors = with_space_names(tensors)
        components = len(tensors.get("encoder.space.matrix", torch.zeros(1, 1)).T)
        trained = build_encoder(trained_part(config), input_shape=(components,))
        kind: Kind = "roots" if "encoder.space.shift" in tensors else "standard"
        encoder = stack(encoder, trained, empty_space(kind, encoder.parts or (Part(encoder.features),), components))
    blank = [0.0] * shape[0], [1.0] * shape[0]  # the file has the normalisation too
    network = build_network(config, encoder, classes=max(MIN_CLASSES, len(names)), mean=blank[0], std=blank[1])
    network.load_state_dict(tensors)
    return network.to(memory_format=torch.channels_last).eval()
