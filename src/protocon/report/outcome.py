"""The last lines of a run on the terminal: what came out, and what to do next."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from protocon.data.files.names import shown
from protocon.report.fair_sample import fair_sample, held_out_words
from protocon.runs import layout

MORE = "Label more images, those that the page shows first, or with protocon label, and train again."
CHECK = "First check these labels of yours, which the others do not predict. One that is wrong can be the reason:"
_SHOWN = 5
"""Labels in doubt, by name; the report shows all of them."""


def outcome_lines(result: dict[str, Any]) -> list[str]:
    """What a person wants to know at the end, from the run's result.json.

    Args:
        result: of a finished run; older versions' may lack entries.
    """
    lines = []
    if result.get("test_accuracy") is not None:
        lines.append(
            f"test accuracy {100 * result['test_accuracy']:.2f} % (averaged weights, mean of the last epochs), "
            f"{result['labelled']} labels, {result['seconds']:.0f} s"
        )
    wrong = result.get("labels_that_look_wrong") or []
    if isinstance(triage := result.get("triage"), dict):
        lines.append(counts_line(triage, len(wrong)))
    lines += [f"  {suspect_line(row)}" for row in wrong[:_SHOWN]]
    if len(wrong) > _SHOWN:
        lines.append(f"  and {len(wrong) - _SHOWN:,} more")
    if checked := result.get("cross_check"):
        lines.append(held_out_line(checked, result.get("labelled")))
    if doubted := to_check(result):
        lines.append(CHECK)
        lines += [f"  {suspect_line(row)}" for row in doubted[:_SHOWN]]
    return [*lines, *_where(Path(result["run"]))]


def to_check(result: dict[str, Any]) -> list[dict[str, Any]]:
    """Given labels that were predicted otherwise, where no label could be accepted; the surest first.

    Args:
        result: of a finished run.
    """
    accepted = (result.get("triage") or {}).get("accepted")
    found: list[dict[str, Any]] = result.get("labels_predicted_otherwise") or []
    return found if accepted == 0 else []


def counts_line(triage: dict[str, Any], wrong: int) -> str:
    """As in: 343 labels accepted, 27 to look at, 4 of yours look wrong."""
    parts = [f"{triage['accepted']:,} labels accepted"]
    if unchecked := int(triage.get("unchecked") or 0):
        parts.append(f"{unchecked:,} sure but unchecked")
    parts.append(f"{triage['review']:,} to look at")
    if wrong:
        parts.append(f"{wrong:,} of yours look{'s' if wrong == 1 else ''} wrong")
    return ", ".join(parts) + "."


def suspect_line(row: dict[str, Any]) -> str:
    """As in: photo12.jpg says cat, looks like dog (0.997)."""
    return (
        f"{shown(str(row['file']))} says {shown(str(row['given']))}, looks like {shown(str(row['looks_like']))} "
        f"({float(row['confidence']):.3f})"
    )


def held_out_line(checked: dict[str, Any], labelled: int | None) -> str:
    """How far the labels can be trusted, from labels that were held out in turn; what to do if that is not far.

    Args:
        checked: `cross_check` of result.json.
        labelled: labels that were given, if that is known.
    """
    fair = fair_sample(checked)
    low, high = fair.interval
    said = (
        f"{held_out_words(checked, labelled, fair)}: {fair.found:,} of {fair.total:,} predictions agree "
        f"({100 * fair.share:.0f} %, 95 % interval {100 * low:.0f} to {100 * high:.0f} %)"
    )
    if fair.listed:
        said += f" ({fair.aside})"
    if checked["threshold"] is None:
        return f"{said}. Even sure predictions were often wrong, so no label is accepted unseen. {MORE}"
    if not checked.get("conclusive", True):
        return f"{said}. Too few of them are sure, so no label is accepted unseen. {MORE}"
    return f"{said}; of the {checked['accepted']:,} that would be accepted, {checked['accepted_right']:,} do."


def triage_rule(file: Path) -> Callable[[float], str]:
    """What to do with a new image's label of this confidence, from the result of the run that made it.

    As in labels.csv, but that new images have the classifier's opinion alone: accept where it is as sure as it is of
    images of the folder whose labels were accepted, `unchecked` where there was no check, `review` below.

    Args:
        file: result.json; without one nothing is known, and nothing is accepted.
    """
    try:
        result = json.loads(file.read_text(encoding="utf-8"))
        triage = result["triage"]
        level = triage.get("threshold_for_new", triage["threshold"])  # runs of earlier versions have the latter only
        threshold = math.inf if level is None else float(level)
        checked = bool(triage.get("accept_checked")) or bool((result.get("cross_check") or {}).get("conclusive"))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        threshold, checked = 0.95, False
    sure = "accept" if checked else "unchecked"
    return lambda confidence: sure if confidence >= threshold else "review"


def _where(run: Path) -> list[str]:
    """Each path ends its line, so that it can be clicked or copied without a full stop."""
    page, labels = run / layout.REPORT, f"The labels are in {run / layout.LABELS}"
    return [f"Open {page}", labels] if page.is_file() else [labels]
