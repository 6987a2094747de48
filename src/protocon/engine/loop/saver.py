"""When a run is saved, what a checkpoint holds, and where a resumed run continues."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from protocon.base import distributed
from protocon.engine.loop.checkpoint import Checkpoint, load_checkpoint, newest_checkpoint, save_checkpoint, set_aside
from protocon.engine.loop.guards import Guards
from protocon.engine.loop.learners import holds_weights
from protocon.engine.loop.meter import EpochMeter
from protocon.engine.loop.signals import StopSignals, stopped
from protocon.engine.setup.fabric import Fabric
from protocon.errors import RunError, RunStopped, TrainingError
from protocon.runs.run_folder import RunFolder

if TYPE_CHECKING:
    from protocon.engine.loop.trainer import Trainer

_NOTHING, _SAVE, _STOP = 0, 1, 2


@dataclass
class Start:
    """Where a run starts or continues."""

    epoch: int = 0
    checkpoint: Checkpoint | None = None

    @property
    def epoch_step(self) -> int:
        """Steps of that epoch which are done."""
        return int(self.checkpoint.facts.get("epoch_step", 0)) if self.checkpoint else 0

    @property
    def seconds(self) -> float:
        """Time that the epoch has taken so far, in earlier processes."""
        return float(self.checkpoint.facts.get("seconds", 0.0)) if self.checkpoint else 0.0

    def meter(self, fresh: EpochMeter) -> EpochMeter:
        """The epoch's meter, with what its first part left."""
        if self.checkpoint is not None and self.epoch_step:
            fresh.load(self.checkpoint.part("meter"), self.epoch_step)
        return fresh

    def guards(self, fresh: Guards) -> Guards:
        """The guards, with what they have seen so far."""
        if self.checkpoint is not None and "guards" in self.checkpoint.facts:
            fresh.load(self.checkpoint.facts["guards"])
        return fresh


def find_start(folder: RunFolder, fabric: Fabric, *, checkpoint_every: int, say: Callable[[str], None]) -> Start:
    """The newest whole checkpoint. The first process looks for it; the others load the very same.

    Args:
        folder: of the run.
        fabric: to tell the other processes.
        checkpoint_every: epochs between checkpoints: a run that has trained for more must have one.
        say: where damaged checkpoints are reported.
    """
    path = ""
    if distributed.rank() == 0:
        found, damaged = newest_checkpoint(folder.checkpoints)
        if found is None and damaged:
            raise RunError(
                f"no checkpoint of {folder.path} can be read, so the run cannot be resumed: "
                f"{'; '.join(damaged.values())}. Leave --resume out to start a new run"
            )
        for bad, reason in damaged.items():
            set_aside(bad)
            say(f"{reason}; set aside, and the one before it is used")
        epochs = len(folder.metrics())
        if found is None and epochs > checkpoint_every:
            raise RunError(
                f"{folder.path} has trained for {epochs} epochs, but {folder.checkpoints} holds no checkpoint, so the "
                "run cannot be resumed. Put the checkpoints back, or leave --resume out to start a new run"
            )
        path = found.name if found is not None else ""
    path = str(fabric.broadcast(path, src=0))
    if not path:
        return Start()
    checkpoint = load_checkpoint(folder.checkpoints / path)
    return Start(int(checkpoint.facts["epoch"]), checkpoint)


class Saver:
    """Saves a run at the end of epochs, every so many minutes within one, and when it is asked to stop.

    Args:
        trainer: what is saved.
        folder: of the run.
        guards: their memory is saved too.
        signals: say when to stop.
        minutes: between checkpoints within an epoch; None for none.
    """

    def __init__(
        self,
        trainer: "Trainer",
        folder: RunFolder,
        *,
        guards: Guards,
        signals: StopSignals,
        minutes: float | None,
    ) -> None:
        self._trainer = trainer
        self._folder = folder
        self._guards = guards
        self._signals = signals
        self._seconds = math.inf if minutes is None else 60.0 * minutes
        self._saved = time.monotonic()

    def after_step(self, epoch: int, meter: EpochMeter, began: float) -> None:
        """Save within an epoch if it is time to, and stop if asked to.

        Args:
            epoch: that is being trained.
            meter: of that epoch.
            began: when it began, on the monotonic clock.
        """
        wish = self._wish()
        if wish == _NOTHING:
            return
        meter.check_finite()
        facts = {"seconds": time.monotonic() - began}
        self._save(epoch, {"meter": meter.state()}, facts, epoch_step=meter.steps)
        if wish == _STOP:
            raise self._stopped(f"step {meter.steps} of epoch {epoch + 1}")

    def after_epoch(self, epoch: int, *, due: bool) -> None:
        """Save the end of an epoch if it is due, and stop if asked to."""
        stop = self._wish() == _STOP
        if due or stop:
            self._save(epoch + 1, {}, {})
        if stop:
            raise self._stopped(f"epoch {epoch + 1}")

    def _wish(self) -> int:
        """What to do now, agreed between all processes: one may have got a signal that the others did not."""
        due = time.monotonic() - self._saved >= self._seconds
        own = _STOP if self._signals.received else _SAVE if due else _NOTHING
        return distributed.largest(own, self._trainer.fabric.device)

    def _save(self, epoch: int, parts: dict[str, Any], facts: dict[str, Any], *, epoch_step: int = 0) -> None:
        trainer = self._trainer
        state = trainer.state() | parts
        if distributed.rank() == 0:
            _refuse_broken(state, trainer.step)
            facts = trainer.facts() | {"guards": self._guards.state()} | facts
            save_checkpoint(self._folder.checkpoints, epoch, state, facts, epoch_step=epoch_step)
        self._saved = time.monotonic()

    def _stopped(self, place: str) -> RunStopped:
        return stopped(self._signals.received, f"after {place}; all of it is saved", self._folder.path)


def _refuse_broken(state: dict[str, dict[str, Any]], step: int) -> None:
    """A loss may be finite and the weights after it not: such a state must not replace a good one."""
    for part in filter(holds_weights, state):
        for name, tensor in state[part].items():
            if tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()):
                raise TrainingError(
                    f"training stopped: the weights {name} are no longer finite after step {step}. Nothing of this is "
                    "saved; the last checkpoint is whole. Try a lower optim.lr, or run.precision=32-true"
                )
