"""What a run leaves behind: the model in one file, a label for every image, and the report."""

from pathlib import Path

from rich.console import Console
from torch import nn

from protocon.base.atomic import write_bytes
from protocon.base.say import say
from protocon.data.imageset import ImageSet
from protocon.engine.setup.session import Session
from protocon.runs import layout
from protocon.runs.model_file import model_bytes
from protocon.runs.run_folder import RunFolder

_THRESHOLD = 0.95
"""τ of the triage where a method has none of its own."""


def save_model(path: Path, network: nn.Module, session: Session) -> None:
    """The trained network as the run's model file.

    Args:
        path: of the model file.
        network: that was trained.
        session: for the settings, the classes and what the network stands on.
    """
    images = session.bundle.train
    content = model_bytes(network, config=session.config, class_names=images.class_names, shape=images.shape)
    write_bytes(path, content)


def triage_threshold(session: Session) -> float:
    """The method's own τ where it is a fixed number, else the usual one."""
    own = getattr(session.method.settings, "threshold", _THRESHOLD)
    return float(own) if isinstance(own, int | float) else _THRESHOLD


def write_card(folder: RunFolder, console: Console) -> None:
    """The model card of a finished run; as with the report, a run is not lost for want of it."""
    try:
        from protocon.report.model_card import build_card
        from protocon.report.record import read_record

        write_bytes(folder.path / layout.CARD, build_card(read_record(folder.path)).encode("utf-8", "backslashreplace"))
    except Exception as error:
        line = f"warning: the model card of this finished run cannot be written ({type(error).__name__}: {error})"
        say(console, line)


def draw_report(folder: RunFolder, images: ImageSet, console: Console) -> None:
    """Make report.html of a finished run. A run is not lost because its report cannot be drawn: that is a warning.

    Args:
        folder: of the run.
        images: the training set, for pictures.
        console: for warnings.
    """
    try:
        from protocon.report.page import build_page

        page = build_page([folder.path], images=lambda _: images)
        write_bytes(folder.report_file, page.encode())
    except Exception as error:
        say(
            console,
            f"warning: the run is finished, but report.html could not be made ({type(error).__name__}: {error}). "
            f"To try again: protocon report {folder.path}",
        )
