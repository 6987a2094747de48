"""The training loop: what changes during a run, a step and an epoch of it."""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import torch
from lightning_fabric import Fabric
from rich.console import Console
from torch import Tensor, nn
from torch.optim import SGD

from protocon.base import distributed
from protocon.base.draws import fold
from protocon.data.imageset import ImageSet
from protocon.data.loading.loader import Loader, RawBatch
from protocon.engine.loop.accumulate import joined, parts_of
from protocon.engine.loop.checkpoint import Checkpoint, optimizer_tensors, restore_optimizer
from protocon.engine.loop.display import Display
from protocon.engine.loop.guards import not_finite, some_ids
from protocon.engine.loop.meter import EpochMeter, Unchecked
from protocon.engine.loop.metrics import accuracy, predict_set
from protocon.engine.loop.optimizers import build_optimizer, learning_rate
from protocon.engine.loop.rank_check import check_same_state
from protocon.engine.setup.session import Session
from protocon.errors import RunError, TrainingError
from protocon.networks.ema import AveragedNetwork
from protocon.networks.syncnorm import average_statistics, synchronise_norms
from protocon.settings.config import RunConfig
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

    def meter(self, epoch: int) -> EpochMeter:
        """A meter for an epoch, with nothing in it."""
        classes = len(self.session.bundle.train.class_names)
        return EpochMeter(self.truth, classes=classes, explain=partial(self._explain, epoch))

    def _explain(self, epoch: int, seen: Unchecked, bad: list[str]) -> TrainingError:
        images, split = self.session.bundle.train, self.session.split
        labelled = [images.ids[int(split.labelled[i])] for i in seen.labelled_index.tolist()]
        unlabelled = [images.ids[int(split.unlabelled[i])] for i in seen.index.tolist()]
        return not_finite(seen, bad, epoch=epoch, labelled=some_ids(labelled), unlabelled=some_ids(unlabelled))

    def train_epoch(
        self, epoch: int, display: Display, *, meter: EpochMeter, after_step: Callable[[], None] = lambda: None
    ) -> dict[str, float]:
        """One pass over the unlabelled set, or what the meter says is left of it."""
        self.network.train()
        for raw in self.loader.epoch(epoch, first_step=meter.steps):
            try:
                step, rows = self.train_step(raw, epoch)
            except RuntimeError:
                meter.check_finite()  # numbers that are not finite can break a step; then that is the message
                raise
            meter.add(step, rows, raw)
            if display.wants_step():
                display.step(meter.steps, meter.means())
            after_step()
        with torch.no_grad():
            published = self.session.method.end_epoch(self.progress(epoch))
        if not self.config.run.sync_batchnorm:
            for network in (self.network, self.averaged):
                average_statistics(network)
        check_same_state(self.state(), epoch=epoch, device=self.fabric.device)
        return {"epoch": epoch, "step": self.step, "lr": self.learning_rate()} | meter.close() | published

    def train_step(self, raw: RawBatch, epoch: int) -> tuple[Step, dict[str, Tensor]]:
        """Views, losses, optimiser, averaged weights, and the method's state; returns the step and all ranks' rows."""
        method, progress = self.session.method, self.progress(epoch)
        # Dropout and the like inside encoders: a function of the step, not of what was drawn before.
        torch.manual_seed(int(fold(fold(self.config.run.seed, self.step), distributed.rank())) >> 1)
        result = self._forward_and_backward(raw, progress)
        if result.loss is not None:
            for group in self.optimizer.param_groups:
                group["lr"] = self.learning_rate()
            self.optimizer.step()
            self.averaged.update(unwrap(self.network), self.step)
        with torch.no_grad():
            rows = distributed.gather_rows(result.rows)
            method.commit(rows, progress)
        self.step += 1
        return result, rows

    def _forward_and_backward(self, raw: RawBatch, progress: Progress) -> Step:
        """Losses of a batch and their gradients, in as many parts as asked for."""
        method = self.session.method
        teacher = self.averaged.module if method.settings.teacher == "eman" else self.network
        self.optimizer.zero_grad()
        steps: list[Step] = []
        parts = parts_of(raw, self.config.optim.accumulate)
        for number, part in enumerate(parts, start=1):
            # Processes exchange gradients once a step, with the last part.
            waits = number < len(parts) and distributed.world_size() > 1
            with self.fabric.no_backward_sync(self.network) if waits else nullcontext():  # type: ignore[arg-type]
                result = method.step(self.network, teacher, self.make_batch(part), progress)
                if result.loss is not None:
                    self.fabric.backward(result.loss / len(parts))
            steps.append(result)
        return joined(steps)

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
            labelled_share=raw.labelled_share,
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
            self.session.as_seen(images),
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

    def facts(self) -> dict[str, Any]:
        """What else a resumed run needs: the step, and how half precision scales its loss by now."""
        return {"step": self.step, "precision": self.fabric.strategy.precision.state_dict()}

    def load(self, checkpoint: Checkpoint) -> None:
        """Put back what `state` and `facts` gave."""
        try:
            unwrap(self.network).load_state_dict(checkpoint.part("network"))
            self.averaged.module.load_state_dict(checkpoint.part("averaged"))
            self.session.method.load_state_dict(checkpoint.part("method"))
            restore_optimizer(self.optimizer, checkpoint.part("optimizer"))
        except (RuntimeError, ValueError, KeyError) as error:
            raise RunError(
                f"the checkpoint does not fit this network or method: {str(error)[:500]}. The run cannot go on with "
                "another network, method or number of classes than it began with"
            ) from error
        self.step = int(checkpoint.facts["step"])
        if scale := checkpoint.facts.get("precision"):  # empty but for 16-mixed
            self.fabric.strategy.precision.load_state_dict(scale)


def unwrap(network: nn.Module) -> nn.Module:
    """The bare network inside Fabric's, DDP's and the compiler's wrappers."""
    for wrapper in ("_forward_module", "module", "_orig_mod"):
        network = getattr(network, wrapper, network)
    return network


def build_trainer(session: Session, fabric: Fabric) -> Trainer:
    """Move everything to the device, and make the processes one: synchronised norms, each with its slice of a batch."""
    config = session.config
    torch.use_deterministic_algorithms(True, warn_only=True)
    # Nothing here reads memory it has not written; filling all of it first costs a sixth of a step.
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    device = fabric.device
    network: nn.Module = session.network.to(device)
    if distributed.world_size() > 1 and config.run.sync_batchnorm:
        network = synchronise_norms(network, device)
    session.method.to(device)
    optimizer = build_optimizer(network, config.optim)
    # The compiled network shares its weights with the bare one.
    ready = cast(nn.Module, torch.compile(network)) if config.run.compile else network
    wrapped, wrapped_optimizer = fabric.setup(ready, optimizer)
    # Copied after the set-up, which may change the weights' precision.
    averaged = AveragedNetwork(
        unwrap(wrapped), decay=config.optim.ema, average_statistics=session.method.settings.teacher == "eman"
    )
    loader = Loader(
        session.samples,
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


def train_in_memory(trainer: Trainer, console: Console, *, title: str) -> None:
    """All epochs, without evaluations, checkpoints or logs."""
    resolved = trainer.session.resolved
    display = Display(
        console, title=title, total_epochs=resolved.total_epochs, steps_per_epoch=resolved.steps_per_epoch
    )
    with display:
        for epoch in range(resolved.total_epochs):
            display.epoch(epoch + 1, trainer.train_epoch(epoch, display, meter=trainer.meter(epoch)))
