"""Checkpoints: everything that a run needs to go on, in one safetensors file, written all or nothing."""

import hashlib
import json
import os
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

from protocon.errors import RunError

_NAME = re.compile(r"epoch-(\d+)\.safetensors")
_DIGEST = "sha256"


@dataclass(frozen=True)
class Checkpoint:
    """Tensors by name, and what is not a tensor as JSON."""

    tensors: dict[str, Tensor]
    facts: dict[str, Any]

    def part(self, prefix: str) -> dict[str, Tensor]:
        """The tensors saved under `prefix`, without it."""
        start = f"{prefix}."
        return {k[len(start) :]: v for k, v in self.tensors.items() if k.startswith(start)}


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file so that a crash leaves either the old one or the new one, never a part."""
    aside = path.with_name(f".{path.name}.writing")
    try:
        with aside.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        aside.replace(path)
    except OSError as error:
        aside.unlink(missing_ok=True)
        raise RunError(f"cannot write {path}: {error.strerror or error}; what was there before is untouched") from error


def save_checkpoint(
    folder: Path,
    epoch: int,
    parts: Mapping[str, Mapping[str, Tensor]],
    facts: dict[str, Any],
    *,
    keep: int = 2,
) -> Path:
    """Save the state after `epoch` epochs and remove all but the newest `keep` checkpoints.

    The file ends in a digest of itself, so that any flipped or missing byte is noticed.
    """
    tensors = {
        f"{prefix}.{name}": tensor.detach().cpu().contiguous()
        for prefix, part in parts.items()
        for name, tensor in part.items()
    }
    # Cloned where several names share memory: safetensors stores each tensor on its own.
    content = save(
        {k: v.clone() for k, v in tensors.items()}, metadata={"facts": json.dumps({**facts, "epoch": epoch})}
    )
    path = folder / f"epoch-{epoch:05d}.safetensors"
    write_bytes(path, content + hashlib.sha256(content).digest())
    for _, old in _numbered(folder)[:-keep]:
        old.unlink(missing_ok=True)
    return path


def load_checkpoint(path: Path) -> Checkpoint:
    """Read one checkpoint; raises RunError if a byte of it is wrong."""
    raw = path.read_bytes()
    content, digest = raw[:-32], raw[-32:]
    if len(raw) < 40 or hashlib.new(_DIGEST, content).digest() != digest:
        raise RunError(f"checkpoint {path} is damaged: its digest does not match its content")
    try:
        tensors = load(content)
        length = int.from_bytes(content[:8], "little")
        facts = json.loads(json.loads(content[8 : 8 + length])["__metadata__"]["facts"])
    except (SafetensorError, ValueError, KeyError) as error:
        raise RunError(f"checkpoint {path} cannot be read: {error}") from error
    return Checkpoint(tensors, facts)


def newest_checkpoint(folder: Path) -> tuple[Checkpoint | None, list[str]]:
    """The newest checkpoint that is whole (None if there is none), and a line for each damaged one."""
    damaged: list[str] = []
    for _, path in reversed(_numbered(folder)):
        try:
            return load_checkpoint(path), damaged
        except (RunError, OSError) as error:
            damaged.append(str(error))
    return None, damaged


def _numbered(folder: Path) -> list[tuple[int, Path]]:
    found = [
        (int(match[1]), path) for path in folder.glob("epoch-*.safetensors") if (match := _NAME.fullmatch(path.name))
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
