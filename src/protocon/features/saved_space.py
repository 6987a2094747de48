"""The space of a table's features, kept beside them: fitting it takes seconds, and depends on no label."""

import hashlib
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import nn

from protocon.base.atomic import write_bytes
from protocon.errors import ProtoConError
from protocon.features.feature_table import FeatureTable

_VERSION = 4
"""Raise it whenever the same features give another space than before."""


def space_file(table: FeatureTable, kind: str, components: int) -> Path:
    """Where the space of these very features is kept, or would be.

    Args:
        table: of the features.
        kind: which space.
        components: how many.
    """
    facts = f"{_VERSION} {table.digest()} {kind} {components}"
    return table.folder / f"space-{hashlib.sha256(facts.encode()).hexdigest()[:24]}.safetensors"


def load_space(file: Path, space: nn.Module) -> bool:
    """Fill a space from its file; False if there is none, or it is damaged, and then the space is as it was."""
    try:
        with safe_open(file, framework="pt") as content:
            tensors = {name: content.get_tensor(name) for name in content.keys()}  # noqa: SIM118  # no mapping
            if (content.metadata() or {}).get("sha256") != _digest(tensors):
                return False
        shapes = {name: tensor.shape for name, tensor in space.state_dict().items()}
        if {name: tensor.shape for name, tensor in tensors.items()} != shapes:
            return False
        space.load_state_dict(tensors)
    except (OSError, SafetensorError, RuntimeError, ValueError, KeyError):
        return False
    return True


def save_space(file: Path, space: nn.Module) -> None:
    """Keep a space. A cache that cannot be written to costs time later, and nothing else."""
    tensors = {name: tensor.contiguous() for name, tensor in space.state_dict().items()}
    try:
        write_bytes(file, save(tensors, metadata={"sha256": _digest(tensors)}))
    except (OSError, ProtoConError):
        return


def _digest(tensors: dict[str, torch.Tensor]) -> str:
    digest = hashlib.sha256()
    for name in sorted(tensors):
        digest.update(f"{name} {tuple(tensors[name].shape)} ".encode())
        digest.update(tensors[name].contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()
