"""Runs that must not depend on the number of processes, and the data they are made on."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console

from protocon.base.draws import normal
from protocon.engine.run import fit
from protocon.methods import METHODS
from protocon.settings.config import RunConfig, build_config
from tests.methods.toys import TOYS, registered

CLASSES = 4
EPOCHS = 2
STEPS_PER_EPOCH = 7

# 95 unlabelled samples in 7 steps of 13 or 14, and 5 labelled ones per step: two processes never hold equal slices of
# all of them. No BatchNorm.
_EMBEDDINGS = ("projector_norm=false", "encoder=mlp-12", "projection_dim=6", "batch_size=5", "mu=3")
_IMAGES = ("encoder=wrn-10-1", "projection_dim=8", "batch_size=5", "mu=2")
_COMMON = (
    f"epochs={EPOCHS}",
    "tensorboard=false",
    "report=false",
    "lr=0.2",
    "run.precision=64-true",
    "accelerator=cpu",
)

CASES: dict[str, tuple[str, tuple[str, ...]]] = {
    **{name: (name, ()) for name in (*METHODS, *TOYS)},
    "mpl": ("mpl", ("dropout=0",)),  # dropout belongs to a process
    "swav, queue": ("swav", ("queue_size=20", "queue_from_epoch=1")),
    "protocon, eman": (
        "protocon",
        ("teacher=eman", "centroid_warmup=1", "heads=2", "center=true", "min_retention=0.6"),
    ),
    "protocon, two heads, instance discrimination": (
        "protocon",
        ("heads=2", "self_supervision=instance-discrimination", "alignment=mean", "history_fraction=0.7"),
    ),
    "protocon, observing first, joint batch": (
        "protocon",
        ("first_epoch=observe", "joint_batchnorm=true", "prototype_target=soft", "prototype_reliable_only=true"),
    ),
    "protocon without projector losses": ("protocon", ("lambda_p=0", "lambda_c=0")),
    "protocon, held-out labels": ("protocon", ("run.cross_check=2",)),
    "comatch, eman": ("comatch", ("teacher=eman", "queue_size=40")),
    "simmatch, eman": ("simmatch", ("teacher=eman",)),
    "pseudo-label, eman": ("pseudo-label", ("teacher=eman", "ramp=0")),
}
"""Method and settings by the name of the case."""

_NORMS = ("neighbours=5", "epochs=2", "teacher=eman")
NORMS: dict[str, tuple[str, tuple[str, ...]]] = {
    "norms": ("protocon", _NORMS),
    "norms apart": ("protocon", (*_NORMS, "sync_batchnorm=false")),
    "two networks": ("taught", ("epochs=2",)),
    "crops of two sizes": ("distilled", ("epochs=2",)),
}
"""Cases on images, with a network full of BatchNorm."""


def write_data(folder: Path) -> None:
    """Embeddings and images of four classes: centres and noise."""
    samples, test = 103, 21
    y = np.arange(samples + test) % CLASSES
    keys = torch.arange(samples + test)
    centres = normal(torch.arange(CLASSES), 1, 8)
    x = (centres[torch.from_numpy(y)] + 1.2 * normal(keys, 2, 8)).numpy()
    np.savez(folder / "embeddings.npz", x=x[:samples], y=y[:samples], x_test=x[samples:], y_test=y[samples:])
    patterns = normal(torch.arange(CLASSES), 3, 256).view(CLASSES, 16, 16)
    pixels = 128 + 40 * patterns[torch.from_numpy(y)] + 30 * normal(keys, 4, 256).view(-1, 16, 16)
    images = pixels.clamp(0, 255).to(torch.uint8).numpy()[:, None]
    np.savez(folder / "images.npz", x=images[:45], y=y[:45], x_test=images[45:56], y_test=y[45:56])


def config_of(data: Path, method: str, overrides: tuple[str, ...], *, images: bool = False) -> RunConfig:
    """A case's settings; thresholds are low, so that there are reliable pseudo-labels from the start."""
    fields = (TOYS | METHODS)[method].Config.model_fields
    low = ("threshold=0.7",) if "threshold" in fields else ()
    source = {
        "name": "arrays",
        "root": str(data / ("images.npz" if images else "embeddings.npz")),
        "labels_per_class": 2,
    }
    with registered():
        return build_config(
            settings={"method_name": method, "data": source},
            overrides=(*_COMMON, *(_IMAGES if images else _EMBEDDINGS), *low, *overrides),
        )


def arguments_of(data: Path, out: Path) -> list[str]:
    """ProtoCon's case as arguments of the command line."""
    root = str(data / "embeddings.npz")
    source = ["--data", "arrays", "--root", root, "--labels-per-class", "2", "--out", str(out), "--name", "run"]
    return ["train", *source, *_COMMON, *_EMBEDDINGS, "threshold=0.7"]


def train(config: RunConfig, out: Path, name: str, *, resume: bool = False) -> dict[str, Any]:
    """Train without a word."""
    with double(), registered():
        return fit(config, out=out, name=name, resume=resume, console=Console(quiet=True, stderr=True))


@contextmanager
def double() -> Iterator[None]:
    """Everything in float64: Fabric's 64-true hands outputs on in the default type."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(before)
