"""Small real runs for tests: digits at their native 8×8 pixels, all or a few of them, a few epochs."""

from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from sklearn.datasets import load_digits

from protocon.engine.run import fit
from protocon.settings.config import RunConfig, build_config

SMALL = ("image_size=8", "tensorboard=false", "report=false", "batch_size=32")


def small_config(*overrides: str, method: str = "protocon", labels_per_class: int = 2) -> RunConfig:
    """Digits with a small network; `overrides` come last."""
    settings = {
        "method_name": method,
        "data": {"name": "digits", "labels_per_class": labels_per_class},
    }
    return build_config(settings=settings, overrides=(*SMALL, *overrides))


def few_digits(folder: Path, count: int = 240) -> list[str]:
    """Settings that read so many digits and 60 to test on from a file, which is written if it is not there."""
    file = folder / "few-digits.npz"
    if not file.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        digits = load_digits()
        x, y = (digits.images[:300, None] * 15.9375).astype(np.uint8), digits.target[:300]
        np.savez(file, x=x[:count], y=y[:count], x_test=x[240:], y_test=y[240:])
    return ["data.name=arrays", f"data.root={file}", "data.labels_per_class=2", "data.image_size=8"]


def quiet() -> Console:
    """A console that shows nothing."""
    return Console(quiet=True, stderr=True)


def small_run(
    out: Path, *overrides: str, method: str = "protocon", labels_per_class: int = 2, resume: bool = False
) -> dict[str, Any]:
    """Train and return the summary."""
    config = small_config(*overrides, method=method, labels_per_class=labels_per_class)
    return fit(config, out=out, console=quiet(), resume=resume)


def tiny_run(out: Path, *overrides: str, method: str = "protocon", resume: bool = False) -> dict[str, Any]:
    """Train on a few digits, which lie beside `out`: epochs of four steps."""
    few = (*few_digits(out.parent, 120), "batch_size=8", "mu=4", "tensorboard=false", "report=false")
    config = build_config(settings={"method_name": method}, overrides=(*few, *overrides))
    return fit(config, out=out, console=quiet(), resume=resume)
