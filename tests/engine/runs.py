"""Small real runs for tests: digits at their native 8×8 pixels, a few epochs."""

from pathlib import Path
from typing import Any

from rich.console import Console

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


def quiet() -> Console:
    """A console that shows nothing."""
    return Console(quiet=True, stderr=True)


def small_run(
    out: Path, *overrides: str, method: str = "protocon", labels_per_class: int = 2, resume: bool = False
) -> dict[str, Any]:
    """Train and return the summary."""
    config = small_config(*overrides, method=method, labels_per_class=labels_per_class)
    return fit(config, out=out, console=quiet(), resume=resume)
