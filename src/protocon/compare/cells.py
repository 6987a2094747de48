"""One cell of the grid, run in a process of its own that ends when the grid's process does."""

import json
import multiprocessing
import os
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from protocon.compare.request import Cell
from protocon.data.labels.split_file import save_split
from protocon.data.shared_bundle import SharedBundle
from protocon.engine.loop.epochs import peak_memory_mib
from protocon.engine.run import fit
from protocon.engine.setup.encode import clean_features
from protocon.engine.setup.fabric import build_fabric
from protocon.engine.setup.resume_rules import carry_on
from protocon.engine.setup.session import settle
from protocon.errors import ProtoConError
from protocon.references import REFERENCES, reference_accuracy
from protocon.runs import layout
from protocon.runs.run_data import choose_split, load_data
from protocon.runs.run_folder import RunFolder, newest_run
from protocon.settings.config import RunConfig


@dataclass(frozen=True)
class Job:
    """What a worker process needs to know."""

    cell: Cell
    config: RunConfig
    folder: Path
    """Holds the cells' run folders."""
    log: Path
    """Takes everything that the cell prints."""
    data: SharedBundle | None = None
    """The data that all cells share; None where each loads its own."""

    def run_folder(self) -> RunFolder | None:
        """The cell's run folder, begun or finished; refuses one with other settings."""
        if self.cell.method in REFERENCES:
            folder = RunFolder(self.folder / self.cell.name)
            return folder if folder.finished() else None
        begun = newest_run(self.folder, self.cell.name)
        return None if begun is None else carry_on(begun, self.config).folder

    def result(self) -> dict[str, Any] | None:
        """The result of a finished cell."""
        folder = self.run_folder()
        return folder.result() if folder is not None and folder.finished() else None


def run_job(job: Job) -> None:
    """Run a cell, or resume it. The target of a worker process: never returns an error, exits with 1."""
    _end_with_parent()
    _print_into(job.log)
    torch.set_num_threads(1)  # so that a result does not depend on how many workers there are
    try:
        if job.cell.method in REFERENCES:
            run_reference(job)
            return
        fit(
            job.config,
            out=job.folder,
            name=job.cell.name,
            resume=True,
            console=Console(stderr=True, soft_wrap=True),
            bundle=None if job.data is None else job.data.open(),
        )
    except ProtoConError as error:
        sys.stderr.write(f"error: {' '.join(str(error).split())}\n")
        sys.exit(1)


def run_reference(job: Job) -> None:
    """Fit and measure a reference; its folder and result have the form of a run's."""
    bundle = load_data(job.config) if job.data is None else job.data.open()
    split = choose_split(job.config, bundle.train)
    if job.config.network.frozen:  # networks learn from features there, so references do too
        settled = settle(job.config, bundle, split=split)
        bundle = clean_features(settled, Console(stderr=True, soft_wrap=True), build_fabric(settled.config).device)
    started = time.monotonic()
    measured = reference_accuracy(job.cell.method, bundle, split)
    seconds = time.monotonic() - started
    folder = RunFolder(job.folder / job.cell.name)
    folder.path.mkdir(parents=True, exist_ok=True)
    save_split(split, folder.split_file)
    result = {
        "run": str(folder.path),
        "data": job.config.data.name,
        "method": job.cell.method,
        "seed": job.cell.seed,
        "labelled": len(split.labelled),
        "unlabelled": len(split.unlabelled),
        **measured,
        "seconds": seconds,
        "peak_memory_mib": peak_memory_mib(),
    }
    folder.write_json(folder.result_file, result)


def split_of(folder: Path) -> tuple[str, str]:
    """What identifies a run's split: the data's fingerprint and the labelled positions."""
    content = json.loads((folder / layout.SPLIT).read_text(encoding="utf-8"))
    return content["fingerprint"], str(sorted(row["index"] for row in content["labelled"]))


def last_line(log: Path) -> str:
    """The last line of a log that is not empty; '' where there is none."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - 4096))
            lines = file.read().decode("utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    return next((line.strip() for line in reversed(lines) if line.strip()), "")


def _end_with_parent() -> None:
    """Stop this process as soon as the one that asked for it is gone, however that ended."""
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def wait() -> None:
        parent.join()
        os._exit(1)  # at once, in the middle of anything: every file is written all or nothing, or cut on resume

    threading.Thread(target=wait, daemon=True).start()


def _print_into(log: Path) -> None:
    """Send standard output and error to a file, whoever writes to them: Python or a library in C."""
    log.parent.mkdir(parents=True, exist_ok=True)
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(file, 1)
    os.dup2(file, 2)
    os.close(file)
