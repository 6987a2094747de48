"""Signals that ask a run to stop: the current step is finished and saved first."""

import os
import shlex
import signal
import sys
import threading
import time
from types import FrameType, TracebackType
from typing import Any

import torch

from protocon.base import distributed
from protocon.errors import RunStopped

_NAMES = ("SIGTERM", "SIGINT", "SIGUSR1")
"""A spot instance's notice, Ctrl-C, and what SLURM sends ahead of a time limit if asked to."""
_PATIENCE_SECONDS = 2.0
"""torchrun passes a Ctrl-C on to processes that the terminal has already told; those two count as one."""


class StopSignals:
    """While open, the first signal only sets `received`; a later Ctrl-C ends the process at once.

    Signals can be handled in the main thread only; elsewhere nothing is changed and nothing ever received.
    """

    def __init__(self) -> None:
        self.received: signal.Signals | None = None
        self._at = 0.0
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> "StopSignals":
        if threading.current_thread() is threading.main_thread():
            for name in _NAMES:
                number = getattr(signal, name, None)  # Windows lacks some
                if number is not None and signal.getsignal(number) != signal.SIG_IGN:  # `nohup` and the like stay
                    self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before.clear()

    def stop_if_asked(self, device: torch.device | None, *, during: str, kept: str, resume: str) -> None:
        """End the run if any process was asked to stop.

        Args:
            device: for processes to agree on, which all call this together; None asks this process alone.
            during: what is interrupted.
            kept: what is saved of it.
            resume: the run's folder.
        """
        asked = 1 if self.received else 0
        if asked if device is None else distributed.largest(asked, device):
            raise stopped(self.received, f"during {during}; {kept}", resume)

    def _note(self, number: int, _frame: FrameType | None) -> None:
        now = time.monotonic()
        if self.received is None:
            self.received, self._at = signal.Signals(number), now
            if number == signal.SIGINT:
                _acknowledge()
        elif number == signal.SIGINT and now - self._at > _PATIENCE_SECONDS:
            raise KeyboardInterrupt


def _acknowledge() -> None:
    """On a terminal, say that Ctrl-C was heard: the part at hand may take a while."""
    if sys.stderr is not None and sys.stderr.isatty():
        # Straight to the file: a handler may interrupt whatever is being printed.
        os.write(2, b"\nCtrl-C: this part is finished and saved first; press it again to end at once\n")


def stopped(received: signal.Signals | None, place: str, run: object) -> RunStopped:
    """What a run that was asked to stop ends with: where, what is saved, and how to resume it.

    Args:
        received: the signal; None where another process received it.
        place: where the run is, and what is saved.
        run: its folder, for the command that resumes it.
    """
    by = "another process" if received is None else "Ctrl-C" if received == signal.SIGINT else received.name
    return RunStopped(
        f"stopped by {by} {place}. Resume with:\n  protocon train --resume {shlex.quote(str(run))}",
        signal=int(received) if received else int(signal.SIGTERM),
    )
