"""As many epochs as fit into the time that a user has, found by timing a few real steps."""

import itertools
import math
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

import numpy as np
import torch
from rich.console import Console

from protocon.base.duration import show_duration
from protocon.base.say import say
from protocon.engine.loop.checkpoint import save_checkpoint
from protocon.engine.loop.trainer import Trainer, build_trainer, unwrap
from protocon.engine.setup.encode import encode
from protocon.engine.setup.fabric import Fabric
from protocon.engine.setup.session import Session, build, settle
from protocon.engine.setup.settled import Settled
from protocon.errors import ConfigError
from protocon.settings.config import RunConfig

MIN_EPOCHS = 10
"""Fewer are not worth training: the clusters of an epoch serve the next one."""
_LONGEST = 8
"""No budget trains longer than this many times the usual length; on a frozen encoder not longer than that."""
_TIMED_STEPS = 4
_SHARE_TIMED = 0.1
_MARGIN = 0.9
"""Share of the budget that is planned; machines are not evenly fast."""

Clock = Callable[[], float]


@dataclass(frozen=True)
class Speed:
    """Seconds that the parts of a run take."""

    step: float
    epoch: float
    """Of an epoch beside its steps: evaluation and checkpoint."""
    once: float
    """After the last epoch: labels of all images."""

    def total(self, epochs: int, steps_per_epoch: int) -> float:
        """Of a whole run."""
        return epochs * (steps_per_epoch * self.step + self.epoch) + self.once

    def epochs_within(self, seconds: float, steps_per_epoch: int) -> int:
        """How many epochs fit."""
        return max(0, math.floor((seconds - self.once) / (steps_per_epoch * self.step + self.epoch)))


def within_budget(
    config: RunConfig,
    settled: Settled,
    fabric: Fabric,
    console: Console,
    *,
    started: float,
    clock: Clock = time.monotonic,
) -> Settled:
    """Settings with as many epochs as fit into the budget; as they are if there is none, or epochs were asked for.

    The result is the same as if `optim.epochs` had been asked for: nothing of the timed steps is left in it.

    Args:
        config: as asked for.
        settled: what `settle` made of it.
        fabric: for the device; all processes settle on what the first one measured.
        console: where the choice is said.
        started: when the budget began, by the clock.
        clock: seconds.
    """
    budget = config.optim.time_budget
    if budget is None or config.optim.epochs != "auto" or config.optim.total_steps is not None:
        return settled
    session = build(settled, encode(settled, console, fabric.device))
    speed = measure(session, fabric, seconds=budget * _SHARE_TIMED, clock=clock)
    left = _MARGIN * budget - (clock() - started)
    epochs, reason = choose_epochs(speed, settled, budget=budget, left=left)
    epochs, reason = fabric.broadcast((epochs, reason), src=0)
    if epochs < MIN_EPOCHS:
        raise ConfigError(reason)
    say(console, f"time budget: {reason}")
    optim = config.optim.model_copy(update={"epochs": epochs})
    fitted = settle(config.model_copy(update={"optim": optim}), settled.bundle, split=settled.split)
    reasons = {**fitted.resolved.reasons, "optim.epochs": f"{epochs} ({reason})"}
    return replace(fitted, resolved=replace(fitted.resolved, reasons=reasons))


def choose_epochs(speed: Speed, settled: Settled, *, budget: float, left: float) -> tuple[int, str]:
    """How many epochs, and why; fewer than MIN_EPOCHS with what to change.

    Args:
        speed: as measured.
        settled: the run, with its usual length.
        budget: seconds that were given.
        left: seconds that are left of it for training.
    """
    per_epoch = settled.resolved.steps_per_epoch
    usual = settled.resolved.total_epochs
    rounds = 1 + settled.config.run.cross_check  # each group of held-out labels takes one more
    epochs = speed.epochs_within(left / rounds, per_epoch)
    pace = f"{speed.step:.3g} s per step, {show_duration(per_epoch * speed.step + speed.epoch)} per epoch"
    spent = _MARGIN * budget - left
    if spent > 0.1 * budget:
        pace += f", after {show_duration(spent)} of preparation"
    if epochs < MIN_EPOCHS:
        needed = (rounds * speed.total(MIN_EPOCHS, per_epoch) + budget * (1 - _MARGIN) + spent) / _MARGIN
        return epochs, (
            f"{show_duration(budget)} are enough for {epochs} epochs ({pace}), and fewer than {MIN_EPOCHS} are not "
            f"worth training. Allow {show_duration(needed)}; or take smaller images (--image-size), a smaller encoder "
            "(--encoder wrn-10-1), or a pretrained one that stays as it is (--frozen); or set --epochs instead"
        )
    if settled.config.network.frozen and epochs >= usual:
        return usual, f"the usual length; on a frozen encoder more would only make it surer of its mistakes; {pace}"
    if epochs > _LONGEST * usual:
        epochs = _LONGEST * usual
        return epochs, f"{_LONGEST} times the usual length, the most that a budget chooses; {pace}"
    planned = show_duration(rounds * speed.total(epochs, per_epoch))
    return epochs, f"fits into {show_duration(budget)}: {pace}, about {planned} in all"


def measure(session: Session, fabric: Fabric, *, seconds: float, clock: Clock = time.monotonic) -> Speed:
    """Time a few real steps, after two that warm up, a checkpoint and a part of an evaluation.

    The session's network and method are used up.

    Args:
        session: complete.
        fabric: for the device.
        seconds: about how many to spend on timed steps; there are at least two.
        clock: seconds.
    """
    trainer = build_trainer(session, fabric)
    trainer.network.train()
    per_epoch = session.resolved.steps_per_epoch

    def run(raw_step: tuple[int, int]) -> float:
        epoch, step = raw_step
        raw = next(iter(trainer.loader.epoch(epoch, first_step=step)))
        began = clock()
        trainer.train_step(raw, epoch)
        _synchronise(fabric.device)
        return clock() - began

    run((0, 0))
    ended = clock()
    with torch.no_grad():
        session.method.end_epoch(trainer.progress(0))  # later epochs do more than the first
    _synchronise(fabric.device)
    ended = clock() - ended
    steps = ((1 + number // per_epoch, number % per_epoch) for number in itertools.count())
    run(next(steps))
    times = [run(next(steps))]
    more = min(_TIMED_STEPS, max(2, int(seconds / max(times[0], 1e-6)))) - 1
    more = fabric.broadcast(more, src=0)  # a step needs all processes
    times += [run(next(steps)) for _ in range(more)]
    image = _seconds_per_image(trainer, clock)
    tested = 0 if session.bundle.test is None else 2 * len(session.bundle.test)
    every = session.config.run
    epoch = ended + tested * image / every.eval_every + _seconds_per_checkpoint(trainer, clock) / every.checkpoint_every
    return Speed(median(times), epoch, len(session.bundle.train) * image)


def _seconds_per_checkpoint(trainer: Trainer, clock: Clock) -> float:
    """Of saving all state, forced to a disk; in a run of small epochs this is much of the time."""
    with tempfile.TemporaryDirectory() as folder:
        began = clock()
        save_checkpoint(Path(folder), 0, trainer.state(), {})
        return clock() - began


def _seconds_per_image(trainer: Trainer, clock: Clock) -> float:
    """Of a prediction; features of a frozen encoder are read whole, images one batch at a time."""
    train = trainer.session.bundle.train
    some = train.subset(np.arange(min(len(train), trainer.config.run.eval_batch_size, 128)))
    began = clock()
    trainer.predict(unwrap(trainer.network), some)
    _synchronise(trainer.fabric.device)
    return (clock() - began) / len(some)


def _synchronise(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
