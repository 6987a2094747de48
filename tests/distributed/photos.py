"""A folder of photographs and the installed encoder, for jobs of one process or two: `train photos --labels …`."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partialmethod
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from protocon.base import distributed
from protocon.engine.labelling import cross_check
from protocon.engine.run import fit
from protocon.errors import RunStopped
from protocon.features.feature_table import FeatureTable
from protocon.settings.config import RunConfig, build_config
from tests.distributed.cases import double
from tests.distributed.stopping import before_step
from tests.engine.photos import SETTINGS, install

CHUNK = 8
"""Images of a chunk of features: 48 images are six, three for each of two processes."""


@contextmanager
def prepared(data: Path, cache: Path) -> Iterator[None]:
    """The package of weights installed, a cache of its own, small chunks, a report that is not worth drawing."""
    with pytest.MonkeyPatch.context() as patch, double():
        install(data / "packages", patch)
        patch.setenv("XDG_CACHE_HOME", str(cache))
        patch.setattr(FeatureTable, "__init__", partialmethod(FeatureTable.__init__, chunk=CHUNK))
        patch.setattr("protocon.report.page.build_page", lambda *_args, **_kwargs: "<html>")
        yield


def config(data: Path) -> RunConfig:
    """Float64, so that the order of sums does not matter."""
    source = {"name": "folder", "root": data / "photos", "labels": data / "labels.csv"}
    return build_config(settings={"data": source}, overrides=(*SETTINGS, "run.precision=64-true", "accelerator=cpu"))


def train(data: Path, out: Path, name: str, *, resume: bool = False) -> dict[str, Any]:
    """Without a word."""
    with prepared(data, out / f"cache of {name}"):
        return fit(config(data), out=out, name=name, resume=resume, console=Console(quiet=True, stderr=True))


def second_only(action: Callable[[], None]) -> Callable[[], None]:
    """What only the second process does."""
    return lambda: action() if distributed.rank() == 1 else None


def asked_to_stop() -> None:
    """As a scheduler does."""
    os.kill(os.getpid(), signal.SIGTERM)


def killed() -> None:
    """As the kernel does when memory runs out."""
    os.kill(os.getpid(), signal.SIGKILL)


@contextmanager
def at_call(owner: Any, name: str, number: int, action: Callable[[], None]) -> Iterator[None]:
    """Do something before this call (from 1) of a function."""
    original, calls = getattr(owner, name), 0

    def watched(*args: Any, **kwargs: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == number:
            action()
        return original(*args, **kwargs)

    setattr(owner, name, watched)
    try:
        yield
    finally:
        setattr(owner, name, original)


def together(data: Path, out: Path) -> None:
    """One run left alone; others whose second process is told to stop, in training and among held-out labels."""
    train(data, out, "whole")
    stages = {
        "training": before_step(5, second_only(asked_to_stop)),
        "held-out": at_call(cross_check, "train_in_memory", 2, second_only(asked_to_stop)),
    }
    for name, interruption in stages.items():
        message = ""
        with interruption:
            try:
                train(data, out, name)
            except RunStopped as stop:
                message = str(stop)
        (out / f"{name}-{distributed.rank()}.txt").write_text(message)
        distributed.barrier()
        train(data, out, name, resume=True)


def killed_among_features(data: Path, out: Path) -> None:
    """The second process dies before it has written its second chunk."""
    with at_call(FeatureTable, "write", 2, second_only(killed)):
        train(data, out, "run")
