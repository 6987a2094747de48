"""What the constraint is for, on a real run: every cluster has members; without it, clusters starve."""

from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits

from protocon.engine.run import fit
from protocon.settings.config import build_config
from tests.engine.runs import quiet


def run(place: Path, *overrides: str) -> dict[str, Any]:
    """Ten epochs on 900 digits as rows of 64 numbers."""
    digits = load_digits()
    x, y = (digits.data / 16).astype(np.float32), digits.target
    np.savez(place / "digits.npz", x=x[:900], y=y[:900], x_test=x[900:1000], y_test=y[900:1000])
    settings = {"data": {"name": "arrays", "root": place / "digits.npz", "labels_per_class": 2}}
    small = ("epochs=10", "encoder=mlp-64", "batch_size=16", "tensorboard=false", "report=false")
    return fit(build_config(settings=settings, overrides=(*small, *overrides)), out=place, console=quiet())


def test_constraint_keeps_clusters_in_use_and_without_it_they_are_lost(tmp_path: Path) -> None:
    held = run(tmp_path)
    assert held["clusters_in_use"] >= 0.95 * held["clusters"]
    assert held["smallest_cluster"] >= 0.5 * held["gamma"]
    free = run(tmp_path, "size_ratio=0")
    assert free["gamma"] == 0
    assert free["clusters"] == held["clusters"]
    assert free["clusters_in_use"] <= 0.8 * held["clusters_in_use"]
