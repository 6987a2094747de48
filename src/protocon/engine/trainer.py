"""The training loop, and a run from its config to its files."""

import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from lightning_fabric import Fabric
from rich.console import Console
from torch import Tensor, nn
from torch.optim import SGD

from protocon import distributed
from protocon.config import RunConfig
from protocon.data.imageset import ImageSet
from protocon.data.loader import Loader, RawBatch
from protocon.draws import fold
from protocon.engine.checkpoint import (
    newest_checkpoint,
    optimizer_tensors,
    restore_optimizer,
    save_checkpoint,
)
from protocon.engine.display import Display
from protocon.engine.evaluate import accuracy, predict_set
from protocon.engine.meter import EpochMeter
from protocon.engine.optim import build_optimizer, learning_rate
from protocon.engine.outputs import append_classes, save_model, write_outcome
from protocon.engine.runfolder import RunFolder
from protocon.engine.scalars import ScalarLog
from protocon.engine.session import Session
from protocon.errors import RunError
from protocon.networks.ema import AveragedNetwork
from protocon.types import Batch, Outputs, Progress, Step

LAST_EPOCHS = 10
"""A run's result is the mean over this many last epochs, as in the paper; never the best one."""

_WEAK, _STRONG = 1, 2  # numbers of the views in the draws' keys; further strong views count on from 2


@dataclass
class Trainer:
    """What changes during a run."""

    session: Session
    fabric: Fabric
    network: nn.Module
    averaged: AveragedNetwork
    optimizer: SGD
    loader: Loader
    truth: Tensor
    step: int = 0

    @property
    def config(self) -> RunConfig:
        """The config without `auto`."""
        return self.session.config

    def train_epoch(self, epoch: int, display: Display) -> dict[str, float]:
        """One pass over the unlabelled set."""
        meter = EpochMeter(self.truth)
        self.network.train()
        for done, raw in enumerate(self.loader.epoch(epoch), start=1):
            meter.add(*self.train_step(raw, epoch))
            if display.wants_step():
                display.step(done, meter.means())
        with torch.no_grad():
            published = self.session.method.end_epoch(self.progress(epoch))
        return {"epoch": epoch, "step": self.step, "lr": self.learning_rate()} | meter.close() | published

    def train_step(self, raw: RawBatch, epoch: int) -> tuple[Step, dict[str, Tensor]]:
        """Views, losses, optimiser, averaged weights, and the method's state; returns the step and all ranks' rows."""
        method, progress = self.session.method, self.progress(epoch)
        # Dropout and the like inside encoders: a function of the step, not of what was drawn before.
        torch.manual_seed(int(fold(fold(self.config.run.seed, self.step), distributed.rank())) >> 1)
        teacher = self.averaged.module if method.settings.teacher == "eman" else self.network
        result = method.step(self.network, teacher, self.make_batch(raw), progress)
        if result.loss is not None:
            for group in self.optimizer.param_groups:
                group["lr"] = self.learning_rate()
            self.optimizer.zero_grad()
            self.fabric.backward(result.loss)
            self.optimizer.step()
            self.averaged.update(unwrap(self.network), self.step)
        with torch.no_grad():
            rows = distributed.gather_rows(result.rows)
            method.commit(rows, progress)
        self.step += 1
        return result, rows

    def learning_rate(self) -> float:
        """The rate of the step that comes next."""
        return learning_rate(float(self.config.optim.lr), self.step, self.session.total_steps)

    def progress(self, epoch: int) -> Progress:
        """Where training is."""
        return Progress(epoch, self.step, self.session.resolved.total_epochs, self.session.total_steps)

    def make_batch(self, raw: RawBatch) -> Batch:
        """Views of a raw batch; a sample's draws depend on its key alone."""
        views, method = self.session.views, self.session.method
        if method.uses_unlabelled:
            weak = views.weak(raw.unlabelled, fold(raw.keys, _WEAK))
            strong = tuple(
                views.strong(raw.unlabelled, fold(raw.keys, _STRONG + number)) for number in range(method.strong_views)
            )
        else:
            weak, strong = raw.unlabelled[:0].float(), ()
        return Batch(
            labelled=views.weak(raw.labelled, fold(raw.labelled_keys, _WEAK)),
            targets=raw.targets,
            labelled_index=raw.labelled_index,
            weak=weak,
            strong=strong,
            index=raw.index,
            share=raw.share,
        )

    def evaluate(self, epoch: int) -> dict[str, float]:
        """Test accuracy of the weights and of their average."""
        test = self.session.bundle.test
        remaining = self.session.resolved.total_epochs - 1 - epoch
        if test is None or (remaining >= LAST_EPOCHS and (epoch + 1) % self.config.run.eval_every):
            return {}
        labels = torch.from_numpy(test.labels.copy())
        return {
            name: accuracy(self.predict(network, test).logits, labels)
            for name, network in (
                ("test_accuracy", unwrap(self.network)),
                ("test_accuracy_ema", self.averaged.module),
            )
        }

    def predict(self, network: nn.Module, images: ImageSet) -> Outputs:
        """Outputs of a whole set."""
        return predict_set(
            network,
            images,
            view=self.session.views.clean,
            batch_size=self.config.run.eval_batch_size,
            device=self.fabric.device,
            workers=int(self.config.data.workers),
        )

    def state(self) -> dict[str, dict[str, Tensor]]:
        """Every tensor that a resumed run needs."""
        return {
            "network": unwrap(self.network).state_dict(),
            "averaged": self.averaged.module.state_dict(),
            "method": self.session.method.state_dict(),
            "optimizer": optimizer_tensors(self.optimizer),
        }

    def restore(self, folder: RunFolder, say: Callable[[str], None]) -> int:
        """Load the newest whole checkpoint; returns the epoch to go on with."""
        checkpoint, damaged = newest_checkpoint(folder.checkpoints)
        for line in damaged:
            say(f"{line}; the one before it is used")
        if checkpoint is None:
            if damaged:
                raise RunError(f"no checkpoint of {folder.path} can be read; the run cannot go on")
            return 0
        unwrap(self.network).load_state_dict(checkpoint.part("network"))
        self.averaged.module.load_state_dict(checkpoint.part("averaged"))
        self.session.method.load_state_dict(checkpoint.part("method"))
        restore_optimizer(self.optimizer, checkpoint.part("optimizer"))
        self.step = int(checkpoint.facts["step"])
        return int(checkpoint.facts["epoch"])


def unwrap(network: nn.Module) -> nn.Module:
    """The bare network inside Fabric's and DDP's wrappers."""
    inner = getattr(network, "_forward_module", network)
    module: nn.Module = getattr(inner, "module", inner)
    return module


def build_trainer(session: Session, fabric: Fabric) -> Trainer:
    """Move everything to the device."""
    config = session.config
    torch.use_deterministic_algorithms(True, warn_only=True)
    device = fabric.device
    network = session.network.to(device)
    averaged = AveragedNetwork(
        network, decay=config.optim.ema, average_statistics=session.method.settings.teacher == "eman"
    ).to(device)
    session.method.to(device)
    optimizer = build_optimizer(network, config.optim)
    wrapped, wrapped_optimizer = fabric.setup(network, optimizer)
    loader = Loader(
        session.bundle.train,
        session.split,
        batch_size=int(config.optim.batch_size),
        mu=config.optim.mu,
        seed=config.run.seed,
        device=device,
        rank=distributed.rank(),
        world_size=distributed.world_size(),
        workers=int(config.data.workers),
    )
    return Trainer(session, fabric, wrapped, averaged, wrapped_optimizer, loader, session.hidden_truth.to(device))


def run_training(session: Session, fabric: Fabric, folder: RunFolder, console: Console) -> dict[str, Any]:
    """Train to the end, resuming from the folder's newest checkpoint, and write the run's files."""
    started = time.monotonic()
    trainer = build_trainer(session, fabric)
    config, resolved = session.config, session.resolved
    first = trainer.restore(folder, lambda line: console.print(line, markup=False, highlight=False, soft_wrap=True))
    display = Display(
        console,
        title=f"{config.data.name} · {config.method_name}",
        total_epochs=resolved.total_epochs,
        steps_per_epoch=resolved.steps_per_epoch,
        first_epoch=first,
    )
    writes = distributed.rank() == 0
    if writes:
        folder.keep_epochs(first)
    with (
        display,
        ScalarLog(folder.path, enabled=writes and config.run.tensorboard, first_epoch=first) as scalars,
    ):
        for epoch in range(first, resolved.total_epochs):
            began = time.monotonic()
            row = trainer.train_epoch(epoch, display)
            row |= trainer.evaluate(epoch)
            display.epoch(epoch + 1, row)
            if writes:
                folder.append(folder.metrics_file, row)
                append_classes(folder, session, epoch)
                folder.append(folder.timings_file, {"epoch": epoch, "seconds": time.monotonic() - began})
                scalars.write(row)
                if (epoch + 1) % config.run.checkpoint_every == 0 or epoch + 1 == resolved.total_epochs:
                    save_checkpoint(folder.checkpoints, epoch + 1, trainer.state(), {"step": trainer.step})
            distributed.barrier()
    result = summarise(trainer, folder, time.monotonic() - started)
    averaged = trainer.averaged.module
    result |= write_outcome(folder, session, lambda images: trainer.predict(averaged, images), writes=writes)
    if writes:
        save_model(folder.model_file, averaged, session)
        folder.write_json(folder.result_file, result)
    distributed.barrier()
    return result


def summarise(trainer: Trainer, folder: RunFolder, seconds: float) -> dict[str, Any]:
    """What `train --json` prints."""
    rows = folder.metrics()
    last = rows[-1] if rows else {}
    session = trainer.session

    def mean_of_last(key: str) -> float | None:
        values = [row[key] for row in rows[-LAST_EPOCHS:] if key in row]
        return sum(values) / len(values) if values else None

    spent = sum(_seconds_of(folder.timings_file))
    return (
        {
            "run": str(folder.path),
            "data": session.config.data.name,
            "method": session.config.method_name,
            "seed": session.config.run.seed,
            "labelled": len(session.split.labelled),
            "unlabelled": len(session.split.unlabelled),
            "epochs": session.resolved.total_epochs,
            "steps": trainer.step,
            "test_accuracy": mean_of_last("test_accuracy_ema"),
            "test_accuracy_weights": mean_of_last("test_accuracy"),
            "test_accuracy_last_epoch": last.get("test_accuracy_ema"),
            "pseudo_label_accuracy": last.get("pseudo_accuracy_refined"),
            "retention": last.get("retention"),
            "seconds": seconds if spent < seconds else spent,
            "peak_memory_mib": peak_memory_mib(),
        }
        | {key: last[key] for key in ("clusters_in_use", "smallest_cluster", "largest_cluster") if key in last}
        | session.method.summary()
    )


def peak_memory_mib() -> float | None:
    """The most main memory that this process has held so far; None where the system does not tell."""
    try:
        import resource
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)  # bytes on macOS, KiB elsewhere


def _seconds_of(file: Path) -> Iterator[float]:
    if file.is_file():
        for line in file.read_text(encoding="utf-8").splitlines():
            yield float(json.loads(line)["seconds"])
