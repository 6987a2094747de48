"""The runs that claims need: those that are missing are trained, begun ones resumed, finished ones kept."""

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from protocon.claims.claim import Need
from protocon.claims.claim_outcome import Outcome, from_folders
from protocon.claims.conditions import CONDITIONS
from protocon.claims.field import Field, drawn
from protocon.compare.cells import Job
from protocon.compare.grid_progress import GridDisplay
from protocon.compare.pool import run_jobs
from protocon.compare.request import Cell, Request, build_request
from protocon.data.shared_bundle import SharedBundle, share
from protocon.errors import RunError
from protocon.runs.run_data import load_data
from protocon.runs.run_folder import RunFolder


def run_needs(
    field: Field,
    needs: Sequence[Need],
    *,
    out: Path,
    workers: int = 1,
    overrides: Sequence[str] = (),
    console: Console | None = None,
) -> Outcome:
    """Train what is missing and return what all runs gave.

    Args:
        field: data and common settings.
        needs: which runs.
        out: folder of the field's runs; claims share them.
        workers: runs at a time.
        overrides: `key=value` over the field's settings, for all runs.
        console: where progress goes; standard error by default.
    """
    console = console or Console(stderr=True)
    jobs = jobs_of(field, needs, out, overrides)
    missing = {key: job for key, job in jobs.items() if job.result() is None}
    if missing:
        with _shared(field, needs, jobs, out) as bundles:
            ready = [replace(job, data=bundles[need.condition]) for (need, _), job in missing.items()]
            _train(ready, len(jobs), workers, console)
    folders: dict[Need, dict[int, RunFolder]] = {}
    for (need, seed), job in jobs.items():
        folder = job.run_folder()
        assert folder is not None
        folders.setdefault(need, {})[seed] = folder
    return from_folders(field, folders)


def jobs_of(
    field: Field, needs: Sequence[Need], out: Path, overrides: Sequence[str] = ()
) -> dict[tuple[Need, int], Job]:
    """A job for each need and seed, seed by seed.

    Args:
        field: data and common settings.
        needs: which runs.
        out: folder of the field's runs.
        overrides: `key=value` over the field's settings.
    """
    jobs = {}
    for seed in range(field.seeds):
        for need in needs:
            place = out / need.condition.replace(" ", "-")
            cell = Cell(need.variant, need.labels, seed)
            config = _request(field, need, overrides).config(cell)
            jobs[need, seed] = Job(cell, config, folder=place / "cells", log=place / "logs" / f"{cell.name}.log")
    return jobs


def _request(field: Field, need: Need, overrides: Sequence[str]) -> Request:
    return build_request(
        methods=[need.variant],
        labels_per_class=[need.labels],
        seeds=field.seeds,
        settings=field.values,
        overrides=[*field.settings, *overrides],
    )


@contextmanager
def _shared(
    field: Field, needs: Sequence[Need], jobs: dict[tuple[Need, int], Job], out: Path
) -> Iterator[dict[str, SharedBundle | None]]:
    """The data under each condition, in files that all runs map. Removed at the end."""
    folder = out / ".data"
    shutil.rmtree(folder, ignore_errors=True)  # of a process that was killed
    bundle = drawn(load_data(next(iter(jobs.values())).config), field)
    try:
        conditions = {need.condition for need in needs}
        yield {name: share(CONDITIONS[name](bundle), folder / name.replace(" ", "-")) for name in conditions}
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _train(missing: list[Job], total: int, workers: int, console: Console) -> None:
    """Run all jobs; the first error ends the claim, after the others are done."""
    errors: list[str] = []
    kept = total - len(missing)
    with GridDisplay(console, title="runs", total=total, finished=kept) as display:
        display.say(f"{total} runs, {kept} of them finished before; {workers} at a time")

        def report(job: Job, error: str | None) -> None:
            result = None if error else job.result()
            if result is None:
                errors.append(f"{job.cell.name}: {error or 'ended without a result'}")
                display.report(job, f"failed: {error}")
            else:
                display.report(job, f"{100 * result['test_accuracy']:.2f} %, {result['seconds']:.1f} s")

        run_jobs(missing, workers=workers, report=report, watch=display.watch)
    if errors:
        raise RunError(f"{len(errors)} of {total} runs failed, so that the claim is not decided: {errors[0]}")
