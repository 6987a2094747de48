"""Run folders made by hand, whose numbers are known."""

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from protocon.data.imageset import ArrayImages
from protocon.runs.layout import LABEL_COLUMNS, OPINION_COLUMNS
from protocon.settings.config import build_config, to_yaml

Labels = list[dict[str, str]]


def write_json(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content), encoding="utf-8")


def write_lines(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


OLD_COLUMNS = (
    "file",
    "split",
    "given",
    "refined",
    "refined_confidence",
    *OPINION_COLUMNS[2:],
    "triage",
    "review_rank",
)
"""Of labels.csv in version 0.1."""


def write_table(path: Path, columns: Sequence[str], rows: Labels) -> None:
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.DictWriter(file, columns, restval="", extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)


def write_labels(path: Path, rows: Labels) -> None:
    """labels.csv and opinions.csv."""
    main = [
        {
            **row,
            "label": row["refined"],
            "confidence": row.get("refined_confidence", ""),
            "looks_like": row.get("looks_like", row["refined"]),
        }
        for row in rows
    ]
    write_table(path, LABEL_COLUMNS, main)
    write_table(path.with_name("opinions.csv"), OPINION_COLUMNS, rows)


def label(file: str, refined: str, confidence: float, **more: str) -> dict[str, str]:
    """A row of labels.csv and opinions.csv; classifier, cluster and prototype agree unless told otherwise."""
    row = {
        "file": file,
        "split": "unlabelled",
        "refined": refined,
        "refined_confidence": f"{confidence:.4f}",
        "classifier": refined,
        "classifier_confidence": f"{confidence:.4f}",
        "cluster": refined,
        "cluster_confidence": "0.9000",
        "prototype": refined,
        "prototype_score": f"{confidence:.4f}",
        "triage": "accept",
    }
    return row | more


def metrics(epochs: int, *, truth: bool = True, test: bool = True, clusters: bool = True) -> list[dict[str, Any]]:
    """Curves that rise evenly: accuracy (e + 1) / epochs in epoch e."""
    rows = []
    for epoch in range(epochs):
        share = (epoch + 1) / epochs
        row: dict[str, Any] = {"epoch": epoch, "loss_x": 2 - share, "loss_u": share, "retention": share / 2}
        if clusters:
            row |= {"loss_p": 1.0, "loss_c": 0.5, "agreement": share, "smallest_cluster": epoch, "largest_cluster": 50}
        if truth:
            row |= {"pseudo_accuracy_classifier": 0.8 * share, "pseudo_accuracy_refined": share}
            row |= {"pseudo_accuracy_cluster": 0.9 * share} if clusters else {}
        if test:
            row |= {"test_accuracy": 0.9 * share, "test_accuracy_ema": share}
        rows.append(row)
    return rows


def write_run(
    path: Path,
    names: Sequence[str],
    labels: Labels | None,
    *,
    epochs: int = 20,
    truth: bool = True,
    test: bool = True,
    clusters: bool = True,
    method: str = "protocon",
) -> Path:
    """A run folder; finished if there are labels."""
    path.mkdir(parents=True)
    overrides = [f"epochs={epochs}", "data.labels_per_class=2"]
    (path / "config.yaml").write_text(to_yaml(build_config(settings={"method_name": method}, overrides=overrides)))
    split = {"dataset": "made", "size": len(labels or ()), "rule": "2 a class", "labelled": [{}] * 2 * len(names)}
    write_json(path / "split.json", split)
    write_lines(path / "metrics.jsonl", metrics(epochs, truth=truth, test=test, clusters=clusters))
    if truth and clusters:
        rows = [
            {
                "epoch": epoch,
                "pseudo_accuracy": {name: (number + 1) / len(names) for number, name in enumerate(names)},
                "purity": dict.fromkeys(names, 0.5),
                "mean_purity": 0.5,
            }
            for epoch in range(epochs)
        ]
        write_lines(path / "classes.jsonl", rows)
    if labels is None:
        return path
    write_labels(path / "labels.csv", labels)
    if clusters:
        members = [9, 10, 11, 20, 40]
        head = {"members": members, "label": [names[0]] * 5, "confidence": [1.0] * 5}
        write_json(path / "clusters.json", {"gamma": 10.0, "neighbours": 18, "clusters": 5, "heads": [head]})
    if test:
        cells = [[number, number, 8] for number in range(len(names))] + [[0, 1, 2]]
        write_json(path / "evaluation.json", {"images": 8 * len(names) + 2, "class_names": names, "confusion": cells})
    triage: dict[str, Any] = {"threshold": 0.95, "accepted": 3, "review": 1, "doubted_labels": 0, "accept_checked": 0}
    triage |= {"accept_precision": None, "review_finds": None}
    write_json(path / "result.json", {"run": str(path), "triage": triage})
    return path


def pictures(ids: Sequence[str], names: Sequence[str], *, side: int = 12) -> ArrayImages:
    """Noise, which compresses worst."""
    noise = np.random.default_rng(0).integers(0, 256, (len(ids), 3, side, side), dtype=np.uint8)
    return ArrayImages(torch.from_numpy(noise), class_names=names, ids=ids)
