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

_QUIET_SECONDS = 10.0
_LIVE_SECONDS = 0.25
_SHOWN = ("loss_x", "loss_u", "loss_p", "loss_c", "retention", "agreement")


class Display:
    """Bars for epochs and steps; on a file or pipe, one line at most every ten seconds.

    Args:
        console: where to draw (standard error).
        title: what is being done.
        total_epochs: length of the upper bar.
        steps_per_epoch: length of the lower one.
        first_epoch: where a resumed run starts.
    """

    def __init__(
        self, console: Console, *, title: str, total_epochs: int, steps_per_epoch: int, first_epoch: int = 0
    ) -> None:
        self.console = console
        self.title = title
        self.total_epochs = total_epochs
        self.live = console.is_terminal
        self._drawn = 0.0
        self._bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("eta"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[note]}"),
            console=console,
            disable=not self.live,
        )
        self._epochs: TaskID = self._bars.add_task(title, total=total_epochs, completed=first_epoch, note="")
        self._steps: TaskID = self._bars.add_task("  step", total=steps_per_epoch, note="")

    def __enter__(self) -> "Display":
        self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bars.stop()

    def wants_step(self) -> bool:
        """Whether it is time to draw again; asking first saves reading numbers off the device."""
        return self.live and time.monotonic() - self._drawn > _LIVE_SECONDS

    def step(self, done: int, terms: Mapping[str, float]) -> None:
        """Draw the progress within an epoch."""
        self._drawn = time.monotonic()
        note = "  ".join(f"{name} {terms[name]:.3f}" for name in _SHOWN if name in terms)
        self._bars.update(self._steps, completed=done, note=note)

    def epoch(self, done: int, row: Mapping[str, float]) -> None:
        """Draw or print the end of an epoch."""
        note = _epoch_note(row)
        self._bars.update(self._epochs, completed=done, note=note)
        if not self.live and (done == self.total_epochs or time.monotonic() - self._drawn > _QUIET_SECONDS):
            self._drawn = time.monotonic()
            self.say(f"{self.title}: epoch {done}/{self.total_epochs}  {note}")

    def say(self, text: str) -> None:
        """Print a line above the bars."""
        self.console.print(text, highlight=False, markup=False, soft_wrap=True)


def _epoch_note(row: Mapping[str, float]) -> str:
    parts = []
    for key, word in (("test_accuracy_ema", "test"), ("pseudo_accuracy_refined", "pseudo-labels")):
        if key in row:
            parts.append(f"{word} {100 * row[key]:.1f} %")
    parts += [f"{name} {row[name]:.3f}" for name in _SHOWN if name in row]
    if "clusters_in_use" in row:
        parts.append(f"clusters {row['clusters_in_use']:.0f}")
    return "  ".join(parts)
