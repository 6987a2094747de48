"""What a run leaves behind: the model in one file, a label for every image, and the report."""

import json
from pathlib import Path

from rich.console import Console
from safetensors.torch import save
from torch import nn

from protocon.base.atomic import write_bytes
from protocon.engine.labelling.class_stats import class_row
from protocon.engine.setup.session import Session
from protocon.runs.run_folder import RunFolder

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
