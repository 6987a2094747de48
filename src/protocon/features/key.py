"""The name under which features are kept: a hash of everything that they depend on, and of nothing else."""

import hashlib
import json
import os
import sys
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import FunctionType

import torch
from torch import Tensor, nn

from protocon.data.files.digests import content_of
from protocon.data.files.strings import StringTable
from protocon.data.imageset import ImageSet

_VERSION = 1
"""Increase it whenever the same images, weights and views give other features than before."""


def images_digest(images: ImageSet) -> str:
    """Hash of the pixels in their order. Labels are left out: more labels need no new features.

    Images that are decoded at every read, and were never all decoded before, are known by their ids and `content()`
    instead, since reading all of them only to hash them could take as long as the features do.
    """
    held: Tensor | None = getattr(images, "tensor", None)
    known: str | None = getattr(images, "digest", None)
    if known:
        return known
    if held is not None:
        return content_of(held)
    digest = hashlib.sha256(f"{images.content()} {images.shape}".encode())
    ids = images.ids if isinstance(images.ids, StringTable) else StringTable(images.ids)
    for part in ids.buffers():
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return digest.hexdigest()


def module_digest(module: nn.Module) -> str:
    """Hash of all parameters and buffers with their names, types and shapes."""
    digest = hashlib.sha256()
    for name, tensor in module.state_dict().items():
        values = tensor.detach().cpu().contiguous()
        digest.update(f"{name} {values.dtype} {tuple(values.shape)} ".encode())
        digest.update(values.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def describe(value: object) -> str:
    """A view and all of its settings as text that is the same in every process; `repr` gives functions addresses.

    The engine that computes a view is left out: all engines give the same one.
    """
    if is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in fields(value) if field.name != "engine"]
        settings = ", ".join(f"{name}={describe(getattr(value, name))}" for name in names)
        return f"{type(value).__name__}({settings})"
    if isinstance(value, tuple | list):
        return f"({', '.join(map(describe, value))})"
    if isinstance(value, FunctionType):
        return f"{value.__module__}.{value.__qualname__}"
    return repr(value)


def features_key(*, images: str, encoder: str, weights: str, views: list[str], seed: int, dtype: str) -> str:
    """One hash of everything that features depend on.

    Args:
        images: `images_digest`; it covers their number and size.
        encoder: its name, since a file of weights does not say how they are used.
        weights: `module_digest`, of the encoder and of what normalises its input.
        views: every view with its settings, in order.
        seed: of the views' draws.
        dtype: in which numbers are kept.
    """
    facts = {
        "version": _VERSION,
        "images": images,
        "encoder": encoder,
        "weights": weights,
        "views": views,
        "seed": seed,
        "dtype": dtype,
    }
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:32]


def encoder_key(encoder: str, weights: str) -> str:
    """Hash of what a single view of a single image depends on besides both.

    Args:
        encoder: its name.
        weights: its digest, with what normalises its input.
    """
    return hashlib.sha256(json.dumps([_VERSION, encoder, weights]).encode()).hexdigest()


def default_cache() -> Path:
    """The user's cache folder for this package, where the system keeps such folders."""
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "protocon"
