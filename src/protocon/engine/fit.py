"""A run from its settings to its folder: new, or going on where an earlier process stopped."""

from pathlib import Path
from typing import Any

from rich.console import Console

from protocon import distributed
from protocon.config import RunConfig
from protocon.data.splitfile import load_split
from protocon.engine import runfolder
from protocon.engine.fabric import build_fabric
from protocon.engine.runfolder import RunFolder
from protocon.engine.session import Session, prepare
from protocon.engine.trainer import run_training


def run_name(config: RunConfig) -> str:
    """Name of a run's folder: data, labels, method, seed."""
    data = config.data
    labels = (
        f"{data.labels_per_class}pc"
        if data.labels_per_class is not None
        else f"{data.labels_percent:g}percent"
        if data.labels_percent is not None
        else "labels"
    )
    return f"{data.name}-{labels}-{config.method_name}-seed{config.run.seed}"


def fit(
    config: RunConfig,
    *,
    out: str | Path,
    name: str | None = None,
    resume: bool | RunFolder = False,
    console: Console | None = None,
) -> dict[str, Any]:
    """Train as configured and return the run's summary.

    Args:
        config: settings, `auto` allowed.
        out: folder that holds run folders.
        name: of the run folder; by default made of data, labels, method and seed.
        resume: go on with the newest run of that name (True) or with this very run; a finished one is not repeated.
        console: where progress goes; standard error by default.
    """
    fabric = build_fabric(config)
    if distributed.rank() != 0:
        console = Console(quiet=True)  # the first process speaks for all
    console = console or Console(stderr=True)
    session = prepare(config)
    folder = _settle_folder(session, config, Path(out) / (name or run_name(config)), resume, console)
    # Every process trains in the folder that the first one settled on.
    folder = RunFolder(Path(fabric.broadcast(str(folder.path) if folder else "", src=0)))
    if folder.finished():
        if distributed.rank() == 0:
            console.print(f"{folder.path} is finished; nothing to do", markup=False, highlight=False)
        return folder.result()
    return run_training(session, fabric, folder, console)


def resume_run(folder: RunFolder, console: Console | None = None) -> dict[str, Any]:
    """Go on with one particular run, with the settings it began with."""
    return fit(folder.config(), out=folder.path.parent, name=folder.path.name, resume=folder, console=console)


def _settle_folder(
    session: Session, config: RunConfig, path: Path, resume: bool | RunFolder, console: Console
) -> RunFolder | None:
    """The folder to train in, with its config and split written; None on other processes than the first."""
    if distributed.rank() != 0:
        return None
    found = resume if isinstance(resume, RunFolder) else None
    if resume is True:
        found = runfolder.find_resumable(path.parent, path.name, config)
    if found is not None:
        load_split(found.split_file, session.bundle.train)  # the data must still be what it was
        console.print(f"resuming {found.path}", markup=False, highlight=False)
        return found
    if resume:
        console.print(f"no run {path} to resume; starting it", markup=False, highlight=False)
    return runfolder.create(path.parent, path.name, config, session.split)
