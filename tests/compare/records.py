"""A comparison with numbers that can be checked by hand."""

from pathlib import Path

from protocon.compare.comparison import CellRecord, Comparison

ACCURACIES: dict[tuple[str, int], tuple[float | None, ...]] = {
    ("protocon", 2): (0.90, 0.92, 0.94),
    ("protocon", 4): (0.95, 0.96, 0.97),
    ("fixmatch", 2): (0.80, 0.86, 0.83),
    ("fixmatch", 4): (0.97, 0.97, 0.97),
    ("supervised", 2): (0.70, None, 0.72),
    ("supervised", 4): (None, None, None),
}


def record(method: str, labels: int, seed: int, accuracy: float | None) -> CellRecord:
    done = accuracy is not None
    return CellRecord(
        method=method,
        labels=labels,
        seed=seed,
        accuracy=accuracy,
        seconds=10.0 + seed if done else None,
        memory=500.0 + labels if done else None,
        run=f"cells/{method}-{labels}pc-seed{seed}" if done else None,
        error=None if done else "error: loss_x | is not finite",
    )


def comparison(
    accuracies: dict[tuple[str, int], tuple[float | None, ...]] = ACCURACIES, out: Path | None = None
) -> Comparison:
    """Methods and label counts in the order of the keys."""
    records = [
        record(method, labels, seed, accuracy)
        for (method, labels), values in accuracies.items()
        for seed, accuracy in enumerate(values)
    ]
    return Comparison(
        data="digits",
        methods=tuple(dict.fromkeys(method for method, _ in accuracies)),
        labels=tuple(dict.fromkeys(labels for _, labels in accuracies)),
        seeds=max(len(values) for values in accuracies.values()),
        records=tuple(records),
        out=out,
    )
