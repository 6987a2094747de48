"""Progress of a run on the terminal: live bars where there is one, a line now and then where not."""

import time
from collections.abc import Mapping
from types import TracebackType

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Column

_QUIET_SECONDS = 10.0
_LIVE_SECONDS = 0.25
_LOSSES = {"loss_x": "Lx", "loss_u": "Lu", "loss_p": "Lp", "loss_c": "Lc"}
_SHARES = {"retention": "kept", "agreement": "agree"}


class Display:
    """Bars for epochs and steps; on a file or pipe, one line at most every ten seconds.

    Args:
        console: where to draw (standard error).
        title: what is being done.
        total_epochs: length of the upper bar.
        steps_per_epoch: length of the lower one.
    """

    def __init__(self, console: Console, *, title: str, total_epochs: int, steps_per_epoch: int) -> None:
        self.console = console
        self.title = title
        self.total_epochs = total_epochs
        self.live = console.is_terminal
        self._drawn = 0.0
        self._bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=16, table_column=Column(min_width=8)),
            MofNCompleteColumn(table_column=Column(no_wrap=True, min_width=7)),
            TimeElapsedColumn(table_column=Column(no_wrap=True, min_width=7)),
            TextColumn("eta"),
            TimeRemainingColumn(table_column=Column(no_wrap=True, min_width=7)),
            # Takes what is left of the line; the numbers before it are never squeezed.
            TextColumn("{task.fields[note]}", table_column=Column(no_wrap=True, overflow="ellipsis", ratio=1)),
            console=console,
            expand=True,
            disable=not self.live,
        )
        self._epochs: TaskID = self._bars.add_task(title, total=total_epochs, note="")
        self._steps: TaskID = self._bars.add_task("  step", total=steps_per_epoch, note="")

    def __enter__(self) -> "Display":
        self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bars.stop()

    def begin(self, epoch: int) -> None:
        """Start at an epoch: where a resumed run continues."""
        self._bars.update(self._epochs, completed=epoch)

    def wants_step(self) -> bool:
        """Whether it is time to draw again; asking first saves reading numbers off the device."""
        return self.live and time.monotonic() - self._drawn > _LIVE_SECONDS

    def step(self, done: int, terms: Mapping[str, float]) -> None:
        """Draw the progress within an epoch."""
        self._drawn = time.monotonic()
        self._bars.update(self._steps, completed=done, note=_terms_note(terms))

    def epoch(self, done: int, row: Mapping[str, float]) -> None:
        """Draw or print the end of an epoch."""
        note = _epoch_note(row)
        self._bars.update(self._epochs, completed=done, note=note)
        if not self.live and (done == self.total_epochs or time.monotonic() - self._drawn > _QUIET_SECONDS):
            self._drawn = time.monotonic()
            self.say(f"{self.title}: epoch {done}/{self.total_epochs}  {note}  {_terms_note(row)}")

    def say(self, text: str) -> None:
        """Print a line above the bars."""
        self.console.print(text, highlight=False, markup=False, soft_wrap=True)


def _terms_note(terms: Mapping[str, float]) -> str:
    """Losses, the share of images above the threshold, and how often classifier and cluster agree."""
    losses = [f"{short} {terms[name]:.2f}" for name, short in _LOSSES.items() if name in terms]
    shares = [f"{short} {100 * terms[name]:.0f} %" for name, short in _SHARES.items() if name in terms]
    return "  ".join(losses + shares)


def _epoch_note(row: Mapping[str, float]) -> str:
    parts = []
    for key, word in (("test_accuracy_ema", "test"), ("pseudo_accuracy_refined", "pseudo-labels")):
        if key in row:
            parts.append(f"{word} {100 * row[key]:.1f} %")
    if "clusters_in_use" in row:
        parts.append(f"clusters {row['clusters_in_use']:.0f}")
    return "  ".join(parts)
