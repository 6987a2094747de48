"""Progress of one stage of a run: one live line with the time that is left, on a terminal and in a notebook.

In a file or a pipe there is nothing to draw over: there a line comes every ten seconds.
"""

import time
from collections.abc import Callable
from datetime import timedelta
from importlib import import_module
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn
from rich.table import Column

_QUIET_SECONDS = 10.0
_LIVE_SECONDS = 0.25
_WIDTH = 24
_TITLE_WIDTH = 20
_TEXT_WIDTH = 17


class StageBar:
    """How much of a stage is done, and how long the rest will take.

    Args:
        console: where to draw.
        title: what is being done.
        total: parts of it: images, steps.
        ready: how many an earlier process had done; they tell nothing about the speed of this one.
        unit: what the parts are called; without one, shares are shown.
        transient: leave nothing behind at the end.
    """

    def __init__(
        self,
        console: Console,
        *,
        title: str,
        total: int,
        ready: int = 0,
        unit: str = "",
        transient: bool = False,
    ) -> None:
        self.console = console
        self.title = title
        self.total = total
        self.done = self._ready = ready
        self.unit = unit
        self.note = ""
        self.live = console.is_terminal or (console.is_jupyter and not console.quiet)
        self._transient = transient
        self._began = self._drawn = time.monotonic()
        self._first: tuple[float, int] | None = None
        self._notebook = NotebookLine() if console.is_jupyter and not console.quiet else None
        self._bar = Progress(
            TextColumn("{task.description}", table_column=Column(no_wrap=True, min_width=_TITLE_WIDTH)),
            BarColumn(bar_width=max(2, min(_WIDTH, console.width - _TITLE_WIDTH - _TEXT_WIDTH))),
            TextColumn("{task.fields[text]}", table_column=Column(no_wrap=True, overflow="ellipsis", ratio=1)),
            console=console,
            expand=True,
            transient=transient,
            disable=not console.is_terminal,
        )
        self._task: TaskID = self._bar.add_task(title, total=total, completed=ready, text="")

    def __enter__(self) -> "StageBar":
        self._began = time.monotonic()
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._draw()
        self._bar.stop()
        if self._notebook is not None and self._transient:
            self._notebook.clear()

    def begin(self, ready: int) -> None:
        """Start here: where a resumed run continues."""
        self.done = self._ready = ready
        self._first = None
        self._began = time.monotonic()

    def update(self, done: int, note: str | None = None) -> None:
        """So much is done now; draws at most four times a second."""
        self.done = min(done, self.total)
        if self._first is None and self.done > self._ready:
            self._first = (time.monotonic(), self.done)
        self.note = self.note if note is None else note
        if self.live and (self.wants_drawing() or self.done == self.total):
            self._draw()

    def wants_drawing(self) -> bool:
        """Whether it is time to draw again; asking first saves reading numbers off the device."""
        return self.live and time.monotonic() - self._drawn > _LIVE_SECONDS

    def wants_line(self) -> bool:
        """Whether nothing can be drawn over, and the last line was written a while ago."""
        return not self.live and time.monotonic() - self._drawn > _QUIET_SECONDS

    def line(self, text: str) -> None:
        """Write a line; in a file or a pipe it counts as the sign of life."""
        self._drawn = time.monotonic() if not self.live else self._drawn
        self.console.print(text, highlight=False, markup=False, soft_wrap=True)

    def remaining(self) -> float | None:
        """Seconds to the end, at the mean speed so far; None while that is not known.

        The first part does not count: an encoder that is being compiled would make hours of minutes.
        """
        if self._first is None or self.done <= self._first[1]:
            return None
        at, parts = self._first
        return (time.monotonic() - at) / (self.done - parts) * (self.total - self.done)

    def text(self) -> str:
        """As in: 204/396 images, 0:00:12 left."""
        share = f"{100 * self.done / max(self.total, 1):.0f} %"
        counted = f"{self.done:,}/{self.total:,} {self.unit}" if self.unit else share
        left = self.remaining()
        if self.done >= self.total:
            timed = f"  {_clock(time.monotonic() - self._began)}"
        else:
            timed = "" if left is None else f"  {_clock(left)} left"
        return f"{counted}{timed}" + (f"  {self.note}" if self.note else "")

    def _draw(self) -> None:
        self._drawn = time.monotonic() if self.live else self._drawn
        self._bar.update(self._task, completed=self.done, text=self.text())
        if self._notebook is not None:
            full = round(_WIDTH * self.done / max(self.total, 1))
            self._notebook.show(f"{self.title:<{_TITLE_WIDTH}} {'█' * full}{'·' * (_WIDTH - full)} {self.text()}")


class NotebookLine:
    """A line of a notebook's output that is drawn over, without widgets."""

    def __init__(self) -> None:
        self._update: Callable[[Any], None] | None = None

    def show(self, text: str) -> None:
        """Draw this in its place."""
        outputs: Any = import_module("IPython.display")
        shown = outputs.Pretty(text)
        if self._update is None:
            self._update = outputs.display(shown, display_id=True).update
        else:
            self._update(shown)

    def clear(self) -> None:
        """Leave an empty line."""
        if self._update is not None:
            self.show("")


def _clock(seconds: float) -> str:
    return str(timedelta(seconds=round(seconds)))
