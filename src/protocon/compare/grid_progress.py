"""Progress of a grid: a bar and one line per running cell; in a file or pipe, one line per finished cell."""

import re
import time
from collections.abc import Sequence
from datetime import timedelta
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from protocon.base.say import say
from protocon.compare.cells import Job, last_line

_EPOCH = re.compile(r"epoch (\d+)/(\d+)  (test [\d.]+ %)")
"""A line of a run's log."""


class GridDisplay:
    """Shows on standard error what is done, what is running and when it may end.

    Args:
        console: where to draw.
        title: what is being done.
        total: cells of the whole grid.
        finished: cells that were finished before.
    """

    def __init__(self, console: Console, *, title: str, total: int, finished: int) -> None:
        self.console = console
        self.total = total
        self.finished = self._at_start = finished
        self._started = time.monotonic()
        self._bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[note]}"),
            console=console,
            disable=not console.is_terminal,
        )
        self._all = self._bars.add_task(title, total=total, completed=finished, note="")
        self._running: dict[str, TaskID] = {}

    def __enter__(self) -> "GridDisplay":
        self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bars.stop()

    def watch(self, jobs: Sequence[Job]) -> None:
        """Draw the running cells, each as far as it last printed."""
        if not self.console.is_terminal:
            return
        for job in jobs:
            name = job.cell.name
            if name not in self._running:
                self._running[name] = self._bars.add_task(f"  {name}", total=None, note="")
            if found := _EPOCH.search(last_line(job.log)):
                done, total, accuracy = found.groups()
                self._bars.update(self._running[name], completed=int(done), total=int(total), note=accuracy)

    def report(self, job: Job, outcome: str) -> None:
        """Say how a cell ended."""
        self.finished += 1
        if job.cell.name in self._running:
            self._bars.remove_task(self._running.pop(job.cell.name))
        self._bars.update(self._all, completed=self.finished, note=f"eta {self.remaining()}")
        self.say(f"{self.finished}/{self.total}  {job.cell.name}: {outcome}  (eta {self.remaining()})")

    def remaining(self) -> str:
        """Estimated time to the end, if cells keep taking as long as those that this process ran."""
        spent = time.monotonic() - self._started
        done = self.finished - self._at_start
        return str(timedelta(seconds=round(spent / max(done, 1) * (self.total - self.finished))))

    def say(self, text: str) -> None:
        """Print a line above the bars."""
        say(self.console, text)
