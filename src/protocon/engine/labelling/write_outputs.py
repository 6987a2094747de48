"""What a run leaves behind: the model in one file, a label for every image, and the numbers behind the report."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from safetensors.torch import save
from torch import nn

from protocon.base.atomic import write_bytes
from protocon.data.imageset import ImageSet
from protocon.engine.labelling.class_stats import class_row, cluster_facts
from protocon.engine.labelling.held_out import HiddenLabels, write_hidden
from protocon.engine.labelling.judgement import judge
from protocon.engine.labelling.label_files import labels_that_look_wrong, write_labels, write_opinions
from protocon.engine.labelling.triage import measure, sort_images
from protocon.engine.loop.metrics import confusion
from protocon.engine.setup.session import Session
from protocon.runs.run_folder import RunFolder
from protocon.types import Outputs

_THRESHOLD = 0.95
"""τ of the triage where a method has none of its own."""


def save_model(path: Path, network: nn.Module, session: Session) -> None:
    """Weights as safetensors, with what is needed to use them (config, classes, shape) as metadata."""
    facts = {
        "config": session.config.model_dump(mode="json"),
        "class_names": list(session.bundle.train.class_names),
        "shape": list(session.bundle.train.shape),
    }
    tensors = {name: t.detach().cpu().contiguous().clone() for name, t in network.state_dict().items()}
    write_bytes(path, save(tensors, metadata={"protocon": json.dumps(facts)}))


def write_outcome(
    folder: RunFolder,
    session: Session,
    predict: Callable[[ImageSet], Outputs],
    *,
    hidden: HiddenLabels | None = None,
    writes: bool,
) -> dict[str, Any]:
    """Write the files about labels, classes and clusters; returns what the summary says of the labels.

    Args:
        folder: of the run.
        session: the run.
        predict: outputs of the averaged network; all processes call it together.
        hidden: what runs without them say of the given labels, if that was tried.
        writes: whether this process writes.
    """
    judged = judge(session, predict)
    tested = None if session.bundle.test is None else predict(session.bundle.test)
    threshold = triage_threshold(session)
    triage = sort_images(judged, threshold, held_out=hidden)
    measured: dict[str, Any] = {"triage": measure(judged, triage)}
    measured["labels_that_look_wrong"] = labels_that_look_wrong(session.bundle.train, judged, triage)
    if hidden is not None:
        measured["cross_check"] = hidden.summary(threshold)
    if not writes:
        return measured
    if hidden is not None:
        write_hidden(folder.cross_check_file, hidden, session.bundle.train, threshold)
    write_labels(folder.labels_file, session.bundle.train, judged, triage)
    write_opinions(folder.opinions_file, session.bundle.train, judged)
    if tested is not None and session.bundle.test is not None:
        labels = torch.from_numpy(session.bundle.test.labels.copy())
        folder.write_json(
            folder.evaluation_file,
            {
                "images": int((labels >= 0).sum()),
                "class_names": list(session.bundle.test.class_names),
                "confusion": confusion(tested.logits, labels),
            },
        )
    facts = cluster_facts(session.method.held(), session.bundle.train.class_names)
    if facts is not None:
        folder.write_json(folder.clusters_file, session.method.summary() | facts)
    return measured


def triage_threshold(session: Session) -> float:
    """The method's own τ where it is a fixed number, else the usual one."""
    own = getattr(session.method.settings, "threshold", _THRESHOLD)
    return float(own) if isinstance(own, int | float) else _THRESHOLD


def append_classes(folder: RunFolder, session: Session, epoch: int) -> None:
    """Add an epoch's line to classes.jsonl, where the method and the data know enough for one."""
    row = class_row(session.method.held(), session.hidden_truth.numpy(), session.bundle.train.class_names)
    if row is not None:
        folder.append(folder.classes_file, {"epoch": epoch} | row)


def draw_report(folder: RunFolder, session: Session, console: Console) -> None:
    """Make report.html of a finished run. A run is not lost because its report cannot be drawn: that is a warning."""
    try:
        from protocon.report.page import build_page

        page = build_page([folder.path], images=lambda _: session.bundle.train)
        write_bytes(folder.report_file, page.encode())
    except Exception as error:
        console.print(
            f"warning: the run is finished, but report.html could not be made ({type(error).__name__}: {error}). "
            f"To try again: protocon report {folder.path}",
            markup=False,
            highlight=False,
            soft_wrap=True,
        )
