"""Run folders with made-up numbers, so that effects are computed without training."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from protocon.claims.claim import Need
from protocon.claims.claim_outcome import Outcome, from_folders
from protocon.claims.field import Field, field_named
from protocon.runs.run_folder import RunFolder

EPOCHS = 30
FIELD: Field = field_named("digits", seeds=3)
Quality = Callable[[Need], float]
"""How good the runs of a need are, from 0 to 1."""


def made_up(folder: Path, needs: list[Need], quality: Quality) -> Outcome:
    """Runs whose numbers all grow with their quality, a little differently in each seed."""
    folders = {}
    for place, need in enumerate(needs):
        folders[need] = {
            seed: _run(folder / f"{place}-{seed}", quality(need) + 0.001 * seed * (1 + place % 3)) for seed in range(3)
        }
    return from_folders(FIELD, folders)


def _run(path: Path, quality: float) -> RunFolder:
    path.mkdir(parents=True)
    run = RunFolder(path)
    rows, classes = [], []
    for epoch in range(EPOCHS):
        reached = quality * min(1.0, (epoch + 1) / (2 * EPOCHS / 3))
        rows.append(_metrics(epoch, reached))
        classes.append(
            {
                "epoch": epoch,
                "pseudo_accuracy": {"easy": min(1.0, 1.2 * reached), "hard": reached},
                "purity": {"easy": min(1.0, 1.4 * reached), "hard": 1.1 * reached},
                "mean_purity": reached,
            }
        )
    _write(run.metrics_file, rows)
    _write(run.classes_file, classes)
    run.write_json(run.result_file, {"test_accuracy": quality, "clusters": 30})
    return run


def _metrics(epoch: int, reached: float) -> dict[str, Any]:
    return {
        "epoch": epoch,
        "test_accuracy_ema": reached,
        "pseudo_accuracy_refined": reached,
        "pseudo_accuracy_classifier": reached - 0.05,
        "pseudo_accuracy_cluster": reached - 0.1 - 0.01 * reached,
        "agreement": reached,
        "retention": 1 - reached,
        "clusters_in_use": round(30 * reached),
    }


def _write(file: Path, rows: list[dict[str, Any]]) -> None:
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
