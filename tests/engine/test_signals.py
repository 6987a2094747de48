"""Signals that ask a run to stop: the step is finished, everything saved, and a message says how to go on."""

import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from protocon.engine.loop import signals
from protocon.engine.loop.checkpoint import load_checkpoint, newest_checkpoint
from protocon.engine.loop.signals import StopSignals
from protocon.engine.loop.trainer import Trainer
from protocon.engine.run import resume_run
from protocon.errors import RunStopped
from protocon.runs.run_folder import RunFolder
from tests.commands import run_command
from tests.engine.kills import assert_same_run
from tests.engine.runs import SMALL, quiet, small_run

QUICK = ("epochs=3", "mu=4", "batch_size=32")


def signal_after_step(monkeypatch: pytest.MonkeyPatch, step: int, number: int) -> None:
    """Send this process a real signal in the middle of a step."""
    train_step = Trainer.train_step

    def step_and_signal(self: Trainer, *args: object) -> object:
        if self.step == step:
            os.kill(os.getpid(), number)
        return train_step(self, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(Trainer, "train_step", step_and_signal)


@pytest.mark.parametrize(("number", "step"), [(signal.SIGTERM, 12), (signal.SIGINT, 0), (signal.SIGUSR1, 10)])
def test_a_stopped_run_is_saved_in_mid_epoch_and_goes_on_to_the_bit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, step: int
) -> None:
    whole = Path(small_run(tmp_path / "whole", *QUICK, method="fixmatch-da")["run"])
    before = signal.getsignal(number)
    with monkeypatch.context() as patch:
        signal_after_step(patch, step, number)
        with pytest.raises(
            RunStopped, match="Ctrl-C" if number == signal.SIGINT else signal.Signals(number).name
        ) as stopped:
            small_run(tmp_path / "stopped", *QUICK, method="fixmatch-da")
    assert signal.getsignal(number) == before
    assert stopped.value.signal == number
    (run,) = (tmp_path / "stopped").iterdir()
    assert f"--resume {run}" in str(stopped.value)
    newest, _ = newest_checkpoint(run / "checkpoints")
    assert newest is not None
    assert load_checkpoint(newest).facts["step"] == step + 1  # the step was finished, and no other begun
    assert not (run / "run.lock").exists()
    resume_run(RunFolder(run), quiet())
    assert_same_run(whole, run)


def test_command_line_says_how_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ("train", "--labels-per-class", "2", "--out", str(tmp_path), "--method", "supervised", *SMALL, *QUICK)
    with monkeypatch.context() as patch:
        signal_after_step(patch, 2, signal.SIGTERM)
        done = run_command(patch, capsys, *arguments, "--json")
    assert done.code == 128 + signal.SIGTERM
    assert done.out == ""
    (run,) = tmp_path.iterdir()
    assert f"protocon train --resume {run}" in done.err
    assert run_command(monkeypatch, capsys, "train", "--resume", str(run), "--json").json["steps"] > 2


def test_signals_are_noted_once_and_a_later_ctrl_c_ends_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with StopSignals() as stop:
        assert stop.received is None
        os.kill(os.getpid(), signal.SIGTERM)
        assert stop.received == signal.SIGTERM
        os.kill(os.getpid(), signal.SIGINT)  # torchrun passes on what the terminal has said already
        assert stop.received == signal.SIGTERM
        monkeypatch.setattr(signals, "_PATIENCE_SECONDS", 0.0)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)


def test_ctrl_c_is_called_that_and_answered_at_once_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[bytes] = []
    monkeypatch.setattr(os, "write", lambda _file, text: written.append(text))
    for terminal in (False, True):
        monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal, raising=False)  # noqa: B023
        with StopSignals() as stop:
            os.kill(os.getpid(), signal.SIGINT)
            assert stop.received == signal.SIGINT
        assert bool(written) == terminal
    assert b"press it again to end at once" in written[0]
    said = str(signals.stopped(signal.SIGINT, "in step 3", "my runs/first"))
    assert said == "stopped by Ctrl-C in step 3. Resume with:\n  protocon train --resume 'my runs/first'"


def in_thread(function: Callable[[], None]) -> None:
    thread = threading.Thread(target=function)
    thread.start()
    thread.join()


def test_ignored_signals_stay_ignored_and_other_threads_change_nothing() -> None:
    before = signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    try:
        with StopSignals():
            assert signal.getsignal(signal.SIGUSR1) == signal.SIG_IGN
        assert signal.getsignal(signal.SIGUSR1) == signal.SIG_IGN
        handler = signal.getsignal(signal.SIGTERM)

        def elsewhere() -> None:
            with StopSignals():
                assert signal.getsignal(signal.SIGTERM) == handler

        in_thread(elsewhere)
    finally:
        signal.signal(signal.SIGUSR1, before)
