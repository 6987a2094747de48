"""Progress of training: one live bar where something can be drawn over, a line now and then where not."""

from collections.abc import Mapping
from types import TracebackType

from rich.console import Console

from protocon.base.say import say
from protocon.base.stage_bar import StageBar

_LOSSES = {"loss_x": "Lx", "loss_u": "Lu", "loss_p": "Lp", "loss_c": "Lc"}
_SHARES = {"retention": "kept", "agreement": "agree"}


class Display:
    """A bar over all steps of all epochs; in a file or a pipe, a line at most every ten seconds.

    Args:
        console: where to draw (standard error).
        title: what is being done.
        total_epochs: of the stage; several runs may share it.
        steps_per_epoch: of each.
        details: show losses and clusters beside the bar, for those who know what they are.
    """

    def __init__(
        self, console: Console, *, title: str, total_epochs: int, steps_per_epoch: int, details: bool = True
    ) -> None:
        self.console = console
        self.title = title
        self.total_epochs = total_epochs
        self._steps = steps_per_epoch
        self._details = details
        self._epoch = 0
        self._bar = StageBar(console, title=title, total=total_epochs * steps_per_epoch)

    def __enter__(self) -> "Display":
        self._bar.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.__exit__(kind, error, trace)

    def begin(self, epoch: int) -> None:
        """Start at an epoch: where a resumed run continues."""
        self._epoch = epoch
        self._bar.begin(epoch * self._steps)

    def wants_step(self) -> bool:
        """Whether it is time to draw again; asking first saves reading numbers off the device."""
        return self._bar.wants_drawing()

    def step(self, done: int, terms: Mapping[str, float]) -> None:
        """Draw the progress within an epoch."""
        self._bar.update(self._epoch * self._steps + done, _terms_note(terms) if self._details else None)

    def epoch(self, done: int, row: Mapping[str, float]) -> None:
        """Draw or print the end of an epoch."""
        self._epoch = done
        note = _epoch_note(row)
        self._bar.update(done * self._steps, note if self._details else None)
        if self._bar.wants_line() or (not self._bar.live and done == self.total_epochs):
            self._bar.line(f"{self.title}: epoch {done}/{self.total_epochs}  {note}  {_terms_note(row)}".rstrip())

    def say(self, text: str) -> None:
        """Print a line above the bar."""
        say(self.console, text)


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
