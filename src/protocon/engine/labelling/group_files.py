"""Finished groups of held-out labels, kept in the run folder: a run that is interrupted among them repeats none."""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np

from protocon.base.atomic import write_bytes
from protocon.data.labels.label_split import Split
from protocon.settings.config import to_yaml
from protocon.settings.resolved_config import ResolvedConfig

Found = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]
"""Position, given label, found label, confidence and whether undisputed, of each label that was held out."""

_COLUMNS = {
    "position": np.int64,
    "given": np.int64,
    "found": np.int64,
    "confidence": np.float32,
    "undisputed": np.bool_,
}


def group_key(config: ResolvedConfig, split: Split) -> str:
    """What a group's result depends on: all settings, and the labels that its run has."""
    digest = hashlib.sha256(to_yaml(config).encode())
    for rows in (split.labelled, split.labels):
        digest.update(np.ascontiguousarray(rows, dtype=np.int64).tobytes())
    return digest.hexdigest()


def save_group(path: Path, key: str, found: Found) -> None:
    """Keep a group's result, with a digest by which damage is noticed.

    Args:
        path: of the group's file.
        key: from `group_key`.
        found: what the run without the group's labels says of them.
    """
    # A float32 as a Python float and back is the same float32.
    rows = {name: column.tolist() for name, column in zip(_COLUMNS, found, strict=True)}
    path.parent.mkdir(exist_ok=True)
    write_bytes(path, json.dumps({"key": key, "sha256": _digest(rows), "rows": rows}).encode() + b"\n")


def load_group(path: Path, key: str) -> Found | None:
    """A group's result; None if it is not there, is damaged, or is of other settings or labels."""
    try:
        content = json.loads(path.read_bytes())
        if content["key"] != key or content["sha256"] != _digest(content["rows"]):
            return None
        rows: list[np.ndarray] = [np.array(content["rows"][name], dtype=kind) for name, kind in _COLUMNS.items()]
    except (OSError, ValueError, LookupError, TypeError):
        return None
    position, given, found, confidence, undisputed = rows
    return position, given, found, confidence, undisputed


def _digest(rows: Any) -> str:
    return hashlib.sha256(json.dumps(rows).encode()).hexdigest()
