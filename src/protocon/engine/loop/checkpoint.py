"""Checkpoints: everything that a run needs to continue, in one safetensors file, written all or nothing."""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor
from torch.optim import Optimizer

from protocon.base.atomic import cannot_write, write_bytes
from protocon.errors import RunError

__all__ = [
    "Checkpoint",
    "load_checkpoint",
    "newest_checkpoint",
    "optimizer_tensors",
    "restore_optimizer",
    "save_checkpoint",
    "set_aside",
    "write_bytes",
]

_NAME = re.compile(r"epoch-(\d+)(?:-step-(\d+))?\.safetensors")
_DIGEST_BYTES = 32


@dataclass(frozen=True)
class Checkpoint:
    """Tensors by name, and what is not a tensor as JSON."""

    tensors: dict[str, Tensor]
    facts: dict[str, Any]

    def part(self, prefix: str) -> dict[str, Tensor]:
        """The tensors saved under `prefix`, without it."""
        start = f"{prefix}."
        return {k[len(start) :]: v for k, v in self.tensors.items() if k.startswith(start)}


def save_checkpoint(
    folder: Path,
    epoch: int,
    parts: Mapping[str, Mapping[str, Tensor]],
    facts: dict[str, Any],
    *,
    epoch_step: int = 0,
    keep: int = 2,
) -> Path:
    """Save the state after `epoch` epochs and `epoch_step` steps of the next; keep only the newest `keep` checkpoints.

    The file ends in a digest of itself, so that any flipped or missing byte is noticed. An older checkpoint is removed
    only once the new one is on the disk.

    Args:
        folder: of checkpoints.
        epoch: whole epochs that are done.
        parts: tensors by part and name.
        facts: what else a resumed run needs, as JSON holds it.
        epoch_step: steps of the next epoch that are done.
        keep: how many checkpoints to keep, this one included.
    """
    tensors = {
        f"{prefix}.{name}": tensor.detach().cpu().contiguous()
        for prefix, part in parts.items()
        for name, tensor in part.items()
    }
    facts = {**facts, "epoch": epoch, "epoch_step": epoch_step}
    # Cloned where several names share memory: safetensors stores each tensor on its own.
    content = save({k: v.clone() for k, v in tensors.items()}, metadata={"facts": json.dumps(facts)})
    within = f"-step-{epoch_step:06d}" if epoch_step else ""
    path = folder / f"epoch-{epoch:05d}{within}.safetensors"
    write_bytes(path, content + hashlib.sha256(content).digest())
    for _, old in _numbered(folder)[:-keep]:
        old.unlink(missing_ok=True)
    return path


def load_checkpoint(path: Path) -> Checkpoint:
    """Read one checkpoint; raises RunError if a byte of it is wrong."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise RunError(f"checkpoint {path} cannot be read: {error.strerror or error}") from error
    content, digest = raw[:-_DIGEST_BYTES], raw[-_DIGEST_BYTES:]
    if len(raw) < _DIGEST_BYTES + 8 or hashlib.sha256(content).digest() != digest:
        raise RunError(f"checkpoint {path} is damaged: its digest does not match its content")
    try:
        tensors = load(content)
        length = int.from_bytes(content[:8], "little")
        facts = json.loads(json.loads(content[8 : 8 + length])["__metadata__"]["facts"])
    except (SafetensorError, ValueError, KeyError) as error:
        raise RunError(f"checkpoint {path} cannot be read: {error}") from error
    return Checkpoint(tensors, facts)


def newest_checkpoint(folder: Path) -> tuple[Path | None, dict[Path, str]]:
    """The newest checkpoint that is whole (None if there is none), and what is wrong with each newer one."""
    damaged: dict[Path, str] = {}
    for _, path in reversed(_numbered(folder)):
        try:
            load_checkpoint(path)
        except RunError as error:
            damaged[path] = str(error)
        else:
            return path, damaged
    return None, damaged


def set_aside(path: Path) -> None:
    """Rename a damaged checkpoint, so that it no longer counts as one of those to keep."""
    try:
        path.replace(path.with_name(f"{path.name}.damaged"))
    except OSError as error:
        raise cannot_write(path, error, "the damaged checkpoint cannot be set aside") from error


def _numbered(folder: Path) -> list[tuple[tuple[int, int], Path]]:
    """Checkpoints in the order of training."""
    found = [
        ((int(match[1]), int(match[2] or 0)), path)
        for path in folder.glob("epoch-*.safetensors")
        if (match := _NAME.fullmatch(path.name))
    ]
    return sorted(found)


def optimizer_tensors(optimizer: Optimizer) -> dict[str, Tensor]:
    """An optimiser's state as tensors by name; its hyper-parameters come from the config."""
    state = optimizer.state_dict()["state"]
    return {
        f"{index}.{name}": torch.as_tensor(value)
        for index, entries in state.items()
        for name, value in entries.items()
        if value is not None
    }


def restore_optimizer(optimizer: Optimizer, tensors: Mapping[str, Tensor]) -> None:
    """Put back what `optimizer_tensors` took."""
    content = optimizer.state_dict()
    state: dict[int, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        index, _, entry = name.partition(".")
        state.setdefault(int(index), {})[entry] = tensor
    optimizer.load_state_dict({**content, "state": state})
    for parameter, entries in optimizer.state.items():
        for name, value in entries.items():
            if value.shape == parameter.shape:
                # In the parameter's own memory layout: fused updates walk both side by side.
                entries[name] = torch.empty_like(parameter).copy_(value)
