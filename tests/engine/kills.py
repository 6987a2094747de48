"""Runs that are killed and resumed until they finish, and what must be the same as if they had not been."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from protocon.base.draws import fold, uniform
from protocon.engine.loop.checkpoint import load_checkpoint, newest_checkpoint
from tests.engine.zygote import Ended, Zygote

SAME_FILES = (
    "metrics.jsonl",
    "split.json",
    "config.yaml",
    "resolved.yaml",
    "model.safetensors",
)
OF_LABELS = ("labels.csv", "opinions.csv")
SAME_IF_THERE = (*OF_LABELS, "classes.jsonl", "warnings.jsonl", "clusters.json", "evaluation.json")
SMALL_DIGITS = (
    *("--data", "digits", "--labels-per-class", "2"),
    *("image_size=8", "batch_size=32", "mu=4", "epochs=6", "report=false"),
)
OFTEN = "checkpoint_minutes=0.0005"  # 30 ms: about every step


def embeddings(folder: Path, points: int = 60) -> list[str]:
    """Two clouds of so many points with 6 labels: steps of milliseconds."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1], points)
    features = rng.normal(size=(2 * points, 8)) + 2 * labels[:, None]
    known = np.where(np.arange(2 * points) % points < 3, labels, -1)
    file = folder / "set.npz"
    np.savez(file, x=features.astype(np.float32), y=known, x_test=features, y_test=labels)
    return [
        "--data",
        "arrays",
        "--root",
        str(file),
        "batch_size=6",
        "mu=4",
        "epochs=4",
        "encoder=mlp-16",
        "report=false",
    ]


@dataclass(frozen=True)
class Command:
    """One run's command line, wherever its folder is."""

    settings: tuple[str, ...]
    method: str = "protocon"

    def arguments(self, out: Path) -> list[str]:
        return [
            *("train", "--out", str(out), "--name", "run", "--resume", "auto"),
            *("--method", self.method, "--json", *self.settings, OFTEN),
        ]


def whole(zygote: Zygote, command: Command, out: Path) -> Ended:
    """The uninterrupted run, with its events counted."""
    ended = zygote.run(*command.arguments(out), at_event=-1)
    assert ended.code == 0, ended.output
    return ended


def moments(seed: int) -> Iterator[float]:
    """Numbers in [0, 1) without end."""
    number = 0
    while True:
        yield float(uniform(fold(fold(0, seed), torch.tensor([number])), 0))
        number += 1


def assert_same_run(first: Path, second: Path) -> None:
    """Every tensor of the last checkpoint, and every file that has no time in it."""
    ours, _ = newest_checkpoint(first / "checkpoints")
    theirs, _ = newest_checkpoint(second / "checkpoints")
    assert ours is not None
    assert theirs is not None
    assert ours.name == theirs.name
    one, other = load_checkpoint(ours), load_checkpoint(theirs)
    assert one.facts == other.facts
    assert one.tensors.keys() == other.tensors.keys()
    for name, tensor in one.tensors.items():
        assert torch.equal(tensor, other.tensors[name]), name
    for file in SAME_FILES:
        assert (first / file).read_bytes() == (second / file).read_bytes(), file
    for file in OF_LABELS:
        assert (first / file).is_file() == has_labels(first), file
    for file in SAME_IF_THERE:
        assert (first / file).is_file() == (second / file).is_file(), file
        if (first / file).is_file():
            assert (first / file).read_bytes() == (second / file).read_bytes(), file
    assert (first / "report.html").is_file() == (second / "report.html").is_file()
    assert _without_times(first) == _without_times(second)
    assert not list(second.rglob(".*")), "something half-written was left"


def has_labels(run: Path) -> bool:
    """Whether a run learnt from labels; one that did not has none to write."""
    return bool(json.loads((run / "split.json").read_text())["labelled"])


def _without_times(run: Path) -> dict[str, Any]:
    result = json.loads((run / "result.json").read_text())
    return {k: v for k, v in result.items() if k not in ("run", "seconds", "peak_memory_mib")}


def where(out: Path) -> str:
    """How far a killed run's checkpoints got."""
    newest, damaged = newest_checkpoint(out / "run" / "checkpoints")
    assert not damaged, "a kill must never tear a checkpoint"
    return newest.stem if newest is not None else "before the first checkpoint"
