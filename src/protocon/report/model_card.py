"""The model card of a run: what the model is for, what it learnt from, how good it is, and what it cannot do.

Markdown with a YAML head, as model hubs read it; `README.md` in the run folder, beside the model.
"""

from typing import Any

import yaml

from protocon.data.files.names import shown
from protocon.report.audit_estimate import audit_lines
from protocon.report.outcome import counts_line, held_out_line
from protocon.report.record import Record

_SHOWN_CLASSES = 100


def build_card(record: Record) -> str:
    """The card of a finished run, from its files."""
    name = record.path.resolve().name
    head = {"library_name": "protocon", "pipeline_tag": "image-classification", "tags": ["semi-supervised-learning"]}
    parts = [
        f"---\n{yaml.safe_dump(head, sort_keys=False)}---\n",
        f"# {name}\n",
        f"{_what(record)}\n",
        "## Use\n",
        f"```console\nprotocon predict {name} new-images/ --out new-labels.csv\n```\n",
        "## Data and labels\n",
        f"{_data(record)}\n",
        "## How good it is\n",
        *(f"- {line}" for line in _figures(record)),
        "\n## Limits\n",
        *(f"- {line}" for line in _limits(record)),
        "\n## Training\n",
        _settings(record),
    ]
    return "\n".join(parts) + "\n"


def _what(record: Record) -> str:
    classes = record.data.get("classes", [])
    version = record.environment.get("packages", {}).get("protocon")
    by = f"protocon {version}" if version else "protocon"
    encoder = record.setting("network", "encoder")
    frozen = record.setting("network", "frozen")
    on = f" on top of `{encoder}`, whose pretrained weights are unchanged" if frozen else f" of the kind `{encoder}`"
    return f"A classifier of {len(classes)} classes, trained by {by} with the method `{record.method}`{on}."


def _data(record: Record) -> str:
    """Counts, and the labels of each class."""
    counts, classes = record.data.get("counts", {}), record.data.get("classes", [])
    said = (
        f"`{record.data.get('data', '?')}`: {counts.get('labelled', 0):,} labelled and {counts.get('unlabelled', 0):,} "
        f"unlabelled images, {counts.get('test', 0):,} test images."
    )
    if skipped := len(record.data.get("skipped", [])):
        said += f" {skipped:,} files were left out; data.json says why."
    rows = [f"| {_cell(row['name'])} | {row['labelled']:,} |" for row in classes[:_SHOWN_CLASSES]]
    rows += [f"| and {len(classes) - _SHOWN_CLASSES:,} more | |"] if len(classes) > _SHOWN_CLASSES else []
    return "\n".join([said, "", "| class | labels given |", "|---|---|", *rows])


def _cell(text: Any) -> str:
    return shown(str(text)).replace("|", "\\|")


def _figures(record: Record) -> list[str]:
    """What is known, the fairest first."""
    result, lines = record.result, []
    if record.audit:
        lines += audit_lines(record.audit)[:1]
    if result.get("test_accuracy") is not None:
        lines.append(f"Test accuracy {100 * result['test_accuracy']:.2f} %, mean of the last epochs.")
    wrong = result.get("labels_that_look_wrong") or []
    if isinstance(triage := result.get("triage"), dict):
        lines.append(f"Labels of the unlabelled training images: {counts_line(triage, len(wrong))}")
    if checked := result.get("cross_check"):
        lines.append(held_out_line(checked, result.get("labelled")))
    return lines or ["Nothing is known: there is no test set, no audit and no check on held-out labels."]


def _limits(record: Record) -> list[str]:
    """What the figures do not say."""
    lines = [
        "Every image gets one of the classes above, also an image of something else.",
        "Confidence is not accuracy, least of all on images unlike those it learnt from, of another camera say.",
    ]
    if not record.audit and record.result.get("test_accuracy") is None:
        lines.append(
            "No image was drawn at random to measure it. Labels that people choose are no fair sample: "
            "`protocon audit` draws a fair one."
        )
    few = [row for row in record.data.get("classes", []) if row["labelled"] < 4]
    if few:
        named = ", ".join(_cell(row["name"]) for row in few[:10])
        lines.append(f"Classes with fewer than four labels, of which little is known: {named}.")
    if wrong := record.result.get("labels_that_look_wrong"):
        lines.append(f"Labels that look wrong and were learnt all the same: {len(wrong):,}; see the report.")
    return lines


def _settings(record: Record) -> str:
    rows = {
        "seed": record.setting("run", "seed"),
        "epochs": record.setting("optim", "epochs"),
        "image size": record.setting("data", "image_size"),
        "encoder's weights": record.setting("network", "weights"),
        "their SHA-256": record.setting("network", "weights_sha256"),
    }
    lines = [f"| {name} | {_cell(value)} |" for name, value in rows.items() if value is not None]
    return "\n".join(["| setting | value |", "|---|---|", *lines, "", "All settings are in `resolved.yaml`."])
