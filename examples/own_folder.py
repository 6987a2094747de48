"""A folder of images and labels for a few of them: train, then read the label of every image.

python examples/own_folder.py photos/ labels.csv [key=value ...]
"""

import csv
import sys
from collections import Counter
from pathlib import Path

from protocon import build_config, fit


def main(folder: str, labels: str, *overrides: str) -> None:
    """Train on the folder and show what to accept and what to look at."""
    settings = {"data": {"name": "folder", "root": folder, "labels": labels}}
    result = fit(build_config(settings=settings, overrides=overrides), out="runs")

    with (Path(result["run"]) / "labels.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    counts = Counter(row["triage"] for row in rows if not row["given"])
    print("new labels: " + ", ".join(f"{count} {triage}" for triage, count in sorted(counts.items())))
    review = sorted((row for row in rows if row["review_rank"]), key=lambda row: int(row["review_rank"]))
    for row in review[:5]:
        print(f"look at {row['file']}, labelled {row['label']}: {row['why']}")
    print(f"everything is in {result['run']}")


if __name__ == "__main__":
    main(*sys.argv[1:])
