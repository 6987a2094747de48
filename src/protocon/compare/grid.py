"""A comparison from its request to its tables: runs what is missing, keeps what is finished."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from protocon.compare.cells import Job, split_of
from protocon.compare.comparison import CellRecord, Comparison
from protocon.compare.grid_progress import GridDisplay
from protocon.compare.pool import run_jobs
from protocon.compare.request import (
    Cell,
    Request,
    additions,
    conflicts,
    request_from_yaml,
    request_to_yaml,
)
from protocon.compare.tables import write_tables
from protocon.data.imageset import DataBundle
from protocon.data.shared_bundle import SharedBundle, share
from protocon.engine.loop.checkpoint import write_bytes
from protocon.engine.setup.encode import clean_features, outline
from protocon.engine.setup.fabric import build_fabric
from protocon.engine.setup.session import build, settle
from protocon.errors import DataError, RunError
from protocon.references import REFERENCES
from protocon.runs.run_data import choose_split, load_data

GRID_FILE = "grid.yaml"


def compare(
    request: Request, *, out: Path | None = None, workers: int | None = None, console: Console | None = None
) -> Comparison:
    """Run the cells of a grid that are not finished, and write its tables.

    Args:
        request: what to compare.
        out: folder of the comparison; by default runs/compare-DATA. Finished cells in it are kept, begun ones
            resumed. It takes a request that adds methods, label counts or seeds, and none that changes settings.
        workers: processes at a time; by default one per core, or one where runs use an accelerator.
        console: where progress goes; standard error by default.
    """
    console = console or Console(stderr=True)
    out = out or Path("runs") / f"compare-{request.data}"
    with _alone_in(out):
        _settle(out, request, console)
        jobs = [
            Job(cell, request.config(cell), folder=out / "cells", log=out / "logs" / f"{cell.name}.log")
            for cell in request.cells()
        ]
        missing = [job for job in jobs if job.result() is None]
        errors: dict[Cell, str] = {}
        if missing:
            with _loaded_once(request, out, console) as data:
                missing = [replace(job, data=data) for job in missing]
                errors = _run(missing, len(jobs), workers or default_workers(request), console)
        comparison = Comparison(
            data=request.data,
            methods=tuple(request.configs),
            labels=request.labels_per_class,
            seeds=request.seeds,
            records=tuple(_record(job, errors.get(job.cell)) for job in jobs),
            out=out,
        )
        check_same_splits(comparison)
        write_tables(comparison, out)
    return comparison


def _run(missing: list[Job], total: int, workers: int, console: Console) -> dict[Cell, str]:
    """Run cells; returns what went wrong, by cell."""
    errors: dict[Cell, str] = {}
    kept = total - len(missing)
    with GridDisplay(console, title="comparison", total=total, finished=kept) as display:
        display.say(f"{total} cells, {kept} of them finished before; {workers} at a time")

        def report(job: Job, error: str | None) -> None:
            result = None if error else job.result()
            if result is None:
                errors[job.cell] = error or "ended without a result"
                display.report(job, f"failed: {errors[job.cell]}")
            else:
                display.report(job, f"{100 * result['test_accuracy']:.2f} %, {result['seconds']:.1f} s")

        run_jobs(missing, workers=workers, report=report, watch=display.watch)
    return errors


def _record(job: Job, error: str | None) -> CellRecord:
    folder = job.run_folder()
    result: dict[str, Any] = folder.result() if folder is not None and folder.finished() else {}
    return CellRecord(
        method=job.cell.method,
        labels=job.cell.labels,
        seed=job.cell.seed,
        accuracy=result.get("test_accuracy"),
        seconds=result.get("seconds"),
        memory=result.get("peak_memory_mib"),
        run=str(folder.path) if folder is not None and result else None,
        error=None if result else error or "not run",
        macro_accuracy=result.get("test_macro_accuracy"),
    )


def check(request: Request) -> DataBundle:
    """Find what would make cells fail before the first one runs: no test set, too few labels, wrong settings.

    Returns the data, which is the same for all cells.
    """
    first = next(iter(request.cells()))
    bundle = load_data(request.config(first))
    if bundle.test is None:
        raise DataError(
            f"{bundle.train.name} has no test set, so methods cannot be compared on it; "
            "add one, or hold some labelled images out with data.test_fraction=0.2"
        )
    for labels in request.labels_per_class:
        choose_split(request.config(Cell(first.method, labels, 0)), bundle.train)
    for method in request.configs:
        if method not in REFERENCES:
            settled = settle(request.config(Cell(method, request.labels_per_class[0], 0)), bundle)
            build(settled, outline(settled))
    return bundle


def encode_once(request: Request, bundle: DataBundle, console: Console) -> None:
    """Compute the features of a frozen encoder once, on all cores, before the cells that share them start.

    Args:
        request: what is compared.
        bundle: the data of all cells.
        console: for progress.
    """
    done: list[Any] = []
    method = next(iter(request.configs))
    for labels in request.labels_per_class:  # how many views are kept can depend on how many images have no label
        config = request.config(Cell(method, labels, 0))
        if not config.network.frozen or len(bundle.train.shape) == 1:
            return
        settled = settle(config, bundle)
        if settled.config.views not in done:
            clean_features(settled, console, build_fabric(settled.config).device)
            done.append(settled.config.views)


@contextmanager
def _loaded_once(request: Request, out: Path, console: Console) -> Iterator[SharedBundle | None]:
    """The data, checked and encoded, in files that all cells map: none decodes images again. Removed at the end."""
    folder = out / ".data"
    shutil.rmtree(folder, ignore_errors=True)  # of a process that was killed
    try:
        bundle = check(request)
        encode_once(request, bundle, console)
        shared = share(bundle, folder)
        del bundle  # memory is for the cells
        yield shared
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def check_same_splits(comparison: Comparison) -> None:
    """Refuse to compare cells of one seed that did not learn from the same labels."""
    seen: dict[tuple[int, int], tuple[tuple[str, str], str]] = {}
    for record in comparison.records:
        if record.run is None:
            continue
        split = split_of(Path(record.run))
        first, run = seen.setdefault((record.labels, record.seed), (split, record.run))
        if split != first:
            raise RunError(
                f"{run} and {record.run} learned from different labels, so they cannot be compared: "
                "the data changed between them. Start again in another folder"
            )


def default_workers(request: Request) -> int:
    """One process per core that this one may use; only one where runs share an accelerator."""
    wanted = next(iter(request.configs.values())).run.accelerator
    present = torch.cuda.is_available() or torch.backends.mps.is_available()
    if wanted not in ("auto", "cpu") or (wanted == "auto" and present):
        return 1
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _settle(out: Path, request: Request, console: Console) -> None:
    """Record the request, or check it against the one recorded before."""
    file = out / GRID_FILE
    if file.is_file():
        old = request_from_yaml(file.read_text(encoding="utf-8"), str(file))
        lines = conflicts(old, request)
        if lines:
            raise RunError(
                f"{out} holds a comparison with other settings, so it cannot continue with these:\n  "
                + "\n  ".join(lines)
                + "\nAsk for the same again (or more methods, label counts or seeds), or choose another --out"
            )
        if more := additions(old, request):
            console.print(f"{out} grows by {more} cells", markup=False, highlight=False)
    write_bytes(file, request_to_yaml(request).encode())


@contextmanager
def _alone_in(out: Path) -> Iterator[None]:
    """Create the folder and hold it: two processes in it would train the same cells at once."""
    try:
        import fcntl
    except ImportError:  # not on this system; nothing is held
        fcntl = None  # type: ignore[assignment]
    if out.is_dir() and not (out / GRID_FILE).is_file() and any(p.name != ".lock" for p in out.iterdir()):
        raise RunError(f"{out} holds other files and no {GRID_FILE}; choose an empty or a new folder with --out")
    try:
        out.mkdir(parents=True, exist_ok=True)
        lock = (out / ".lock").open("w")
    except OSError as error:
        raise RunError(f"cannot write to {out}: {error.strerror or error}") from error
    with lock:
        if fcntl is not None:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise RunError(f"another process is at work in {out}; wait for it, or choose another --out") from error
        yield
