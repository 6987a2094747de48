"""Worker processes: one fresh process per cell, a fixed number at a time; a failing cell does not stop the others."""

import multiprocessing
import os
import signal
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import wait
from multiprocessing.context import BaseContext

from protocon.compare.cells import Job, last_line, run_job

Report = Callable[[Job, str | None], None]
"""Called for every cell that ended, with what went wrong."""
Watch = Callable[[Sequence[Job]], None]
"""Called now and then with the cells that are running."""

_TICK_SECONDS = 0.5
_IMPORTED_ONCE = (run_job.__module__, "sklearn.datasets", "sklearn.linear_model", "sklearn.semi_supervised")


def run_jobs(jobs: Sequence[Job], *, workers: int, report: Report, watch: Watch) -> None:
    """Run all jobs. Stops their processes if this one is interrupted.

    Every cell has a process of its own, so that its peak memory is its own too. Where the system allows,
    processes are forks of a server that has imported everything but run nothing: importing takes seconds.

    Args:
        jobs: in the order in which they start.
        workers: processes at a time.
        report: told of each job that has ended, and how.
        watch: called now and then with the jobs that are running.
    """
    context = _context()
    waiting = deque(jobs)
    running: dict[int, tuple[multiprocessing.process.BaseProcess, Job]] = {}
    try:
        with _one_thread():
            while waiting or running:
                while waiting and len(running) < workers:
                    job = waiting.popleft()
                    process = context.Process(target=run_job, args=(job,))  # type: ignore[attr-defined]
                    process.start()
                    running[process.sentinel] = (process, job)
                watch([job for _, job in running.values()])
                ended = wait(list(running), timeout=_TICK_SECONDS)
                for sentinel in [sentinel for sentinel in running if sentinel in ended]:
                    process, job = running.pop(sentinel)
                    process.join()
                    report(job, _failure(process.exitcode, job))
    finally:
        for process, _ in running.values():
            process.terminate()
        for process, _ in running.values():
            process.join()


def _context() -> BaseContext:
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(_IMPORTED_ONCE))
    return context


@contextmanager
def _one_thread() -> Iterator[None]:
    """Processes started meanwhile use one thread each: so many workers, so many busy cores."""
    before = os.environ.get("OMP_NUM_THREADS")
    os.environ["OMP_NUM_THREADS"] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ["OMP_NUM_THREADS"]
        else:
            os.environ["OMP_NUM_THREADS"] = before


def _failure(exitcode: int | None, job: Job) -> str | None:
    """What went wrong, in a line; None if nothing did."""
    if exitcode == 0:
        return None
    said = last_line(job.log)
    if exitcode is not None and exitcode < 0:
        name = signal.Signals(-exitcode).name
        memory = " (out of memory?)" if name == "SIGKILL" else ""
        return f"killed by {name}{memory}; last line of its log: {said}"
    return said or f"ended with exit code {exitcode} and no message"
