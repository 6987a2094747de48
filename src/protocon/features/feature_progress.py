"""Progress of the features' computation: a bar on a terminal, a line now and then elsewhere."""

import time
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

_QUIET_SECONDS = 10.0


class FeatureProgress:
    """Images whose features are done, of all, with the time that is left.

    Args:
        console: where to draw (standard error).
        title: what is being computed.
        total: images.
        ready: how many of them the cache already had.
    """

    def __init__(self, console: Console, *, title: str, total: int, ready: int) -> None:
        self.console = console
        self.title = title
        self.total = total
        self.ready = self.count = ready
        self._began = self._said = time.monotonic()
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=16),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("eta"),
            TimeRemainingColumn(),
            console=console,
            disable=not console.is_terminal,
        )
        self._task = self._bar.add_task(title, total=total, completed=ready)

    def __enter__(self) -> "FeatureProgress":
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def add(self, images: int) -> None:
        """Report so many more images as done."""
        self.count = min(self.count + images, self.total)
        self._bar.update(self._task, completed=self.count)
        now = time.monotonic()
        if not self.console.is_terminal and now - self._said > _QUIET_SECONDS:
            self._said = now
            left = (now - self._began) / (self.count - self.ready) * (self.total - self.count)
            self.console.print(
                f"{self.title}: {self.count:,} of {self.total:,} images, about {left / 60:.0f} min to go",
                highlight=False,
                markup=False,
                soft_wrap=True,
            )
