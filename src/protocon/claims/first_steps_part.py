"""The first steps of an exact recipe as a part of the page of evidence."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_COLUMNS = {
    "loss_x": ("L_x", 3),
    "loss_u": ("L_u", 4),
    "loss_p": ("L_p", 3),
    "loss_c": ("L_c", 3),
    "retention": ("reliable", 4),
    "clusters_in_use": ("clusters in use", 0),
    "smallest_cluster": ("smallest", 0),
    "largest_cluster": ("largest", 0),
    "pseudo_accuracy_refined": ("refined labels right", 3),
    "test_accuracy_ema": ("test accuracy", 3),
}
"""Metrics that are shown, with their headings and decimals."""


@dataclass(frozen=True)
class FirstSteps:
    """A run that was stopped after its first epochs."""

    digest: Mapping[str, Any]
    rows: Sequence[Mapping[str, Any]]
    """Its metrics, one row per epoch."""
    files: str
    """Where log and report are, as the page sees it."""


def first_steps_section(steps: FirstSteps | None) -> str:
    """The run as Markdown; '' where there is none."""
    if steps is None:
        return ""
    digest, rows = steps.digest, steps.rows
    shown = [key for key in _COLUMNS if any(key in row for row in rows)]
    finite = "All are finite" if digest["all_finite"] else "**Not all are finite**"
    share = 100 * digest["steps"] / digest["total_steps"]
    lines = [
        "## The first steps of the exact recipe",
        "",
        f"`{digest['recipe']}` on real CIFAR-10, unchanged, on a CPU: WRN-28-2, 40 labels, a learning rate that falls "
        f"over {digest['total_steps']:,} steps. The run was stopped after {digest['steps']} steps "
        f"({digest['epochs']} epochs, {digest['seconds'] / 60:.0f} minutes), {share:.2f} % of the way. The first epoch "
        "only fills the banks, as the paper says; the others learn with all losses. This shows that the recipe runs "
        "and that its clusters are in use; of the accuracy that it would reach it shows nothing.",
        "",
        f"{digest['numbers']} numbers were logged. {finite}. Warnings: {len(digest['warnings'])}.",
        "",
        "| epoch | steps | " + " | ".join(_COLUMNS[key][0] for key in shown) + " |",
        "|---|---|" + "---|" * len(shown),
    ]
    for row in rows:
        cells = [f"{row[key]:.{_COLUMNS[key][1]}f}" if key in row else "–" for key in shown]
        lines.append(f"| {row['epoch'] + 1} | {row['step']} | {' | '.join(cells)} |")
    links = f"[log]({steps.files}/metrics.jsonl), [report]({steps.files}/report.html)"
    return "\n".join([*lines, "", f"{links}. Commit {digest['commit']}. Command: `{digest['command']}`", ""])
