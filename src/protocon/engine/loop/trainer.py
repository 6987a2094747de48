"""The training loop: what changes during a run, a step and an epoch of it."""

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from protocon.base import distributed
from protocon.base.draws import fold
from protocon.base.threads import SMALL, one_thread
from protocon.base.torch_seed import seed_torch
from protocon.data.imageset import ImageSet
from protocon.data.loading.loader import Loader, RawBatch
from protocon.engine.loop.accumulate import joined, parts_of
from protocon.engine.loop.batch_views import BatchViews
from protocon.engine.loop.checkpoint import Checkpoint
from protocon.engine.loop.display import Display
from protocon.engine.loop.feature_watch import FeatureView, watch_features
from protocon.engine.loop.guards import not_finite, some_ids
from protocon.engine.loop.learners import Learners, unwrap
from protocon.engine.loop.meter import EpochMeter, Unchecked
from protocon.engine.loop.metrics import METRICS
from protocon.engine.loop.rank_check import check_same_state
from protocon.engine.loop.view_blocks import in_blocks
from protocon.engine.setup.crop_views import build_crops
from protocon.engine.setup.fabric import Fabric, load_precision, precision_state
from protocon.engine.setup.session import Session
from protocon.engine.setup.whole_set import whole_set
from protocon.errors import RunError, TrainingError
from protocon.networks.ema import MomentumCopy
from protocon.runs.predict_set import predict_set
from protocon.settings.resolved_config import ResolvedConfig
from protocon.types import Batch, Outputs, Progress, Step, Update

__all__ = ["LAST_EPOCHS", "Trainer", "build_trainer", "predict", "train_in_memory", "unwrap"]

LAST_EPOCHS = 10
"""A run's result is the mean over this many last epochs, as in the paper; never the best one."""


@dataclass
class Trainer:
    """What changes during a run."""

    session: Session
    fabric: Fabric
    learners: Learners
    loader: Loader
    make_batch: Callable[[RawBatch], Batch]
    truth: Tensor
    step: int = 0

    @property
    def network(self) -> nn.Module:
        """The network that the run is about, as Fabric wrapped it."""
        return self.learners.main.network

    @property
    def averaged(self) -> MomentumCopy:
        """Its averaged copy."""
        return self.learners.copies["averaged"]

    @property
    def evaluated(self) -> nn.Module:
        """The network that predicts and is saved: usually the averaged copy."""
        return self.learners.evaluated

    @property
    def config(self) -> ResolvedConfig:
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
        """One pass over the unlabelled set, or what the meter says is left of it.

        Args:
            epoch: from 0.
            display: shows steps as they pass.
            meter: of this epoch; a resumed one has counted some steps already.
            after_step: called after every step; may raise.
        """
        self.learners.train()
        with one_thread(self._small):
            for raw, batch in self._batches(epoch, first_step=meter.steps):
                try:
                    step, rows = self.train_step(raw, epoch, batch)
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
            self.learners.average_statistics()
        check_same_state(self.state(), epoch=epoch, device=self.fabric.device)
        return {"epoch": epoch, "step": self.step, "lr": self.learning_rate(epoch)} | meter.close() | published

    @property
    def _small(self) -> bool:
        """Whether a step is so small that one thread is quicker than two: heads on features."""
        optim, shape = self.config.optim, self.session.samples.shape
        return len(shape) < 3 and optim.batch_size * (1 + optim.mu) * shape[-1] <= SMALL

    def _batches(self, epoch: int, *, first_step: int) -> Iterator[tuple[RawBatch, Batch | None]]:
        """Raw batches, with their views where it pays to make those of several steps at once: of features."""
        steps, method = self.loader.epoch(epoch, first_step=first_step), self.session.method
        row_by_row = len(self.session.samples.shape) < 3 and not method.crops and method.support() is None
        if row_by_row and self.config.optim.accumulate == 1:
            return in_blocks(steps, self.make_batch)
        return ((raw, None) for raw in steps)

    def train_step(self, raw: RawBatch, epoch: int, batch: Batch | None = None) -> tuple[Step, dict[str, Tensor]]:
        """Views, updates, momentum copies, and the method's state; returns the step and all ranks' rows.

        Args:
            raw: what was read.
            epoch: from 0.
            batch: its views, if they are made already.
        """
        method, progress = self.session.method, self.progress(epoch)
        # Dropout and the like inside encoders: a function of the step, not of what was drawn before.
        seed_torch(int(fold(fold(self.config.run.seed, self.step), distributed.rank())) >> 1)
        result = self._update(raw, batch, progress)
        self.learners.follow(progress)
        with torch.no_grad():
            rows = distributed.gather_rows(result.rows)
            method.commit(rows, progress)
        self.step += 1
        return result, rows

    def _update(self, raw: RawBatch, batch: Batch | None, progress: Progress) -> Step:
        """The updates of a step, each computed in as many parts as asked for, all parts before the next update."""
        method, learners = self.session.method, self.learners
        parts = parts_of(raw, self.config.optim.accumulate)
        first = self.make_batch(parts[0]) if batch is None else batch
        running = [method.updates(learners.forwards, first, progress)]
        del first
        steps: dict[int, Step] = {}
        while len(steps) < len(parts):
            update: Update | None = None
            for number in range(len(parts)):
                if number == len(running):  # no views before they are needed
                    running.append(method.updates(learners.forwards, self.make_batch(parts[number]), progress))
                if number in steps:
                    continue
                # Processes exchange gradients once per update, with the last part.
                with learners.without_exchange() if number < len(parts) - 1 else nullcontext():
                    try:
                        yielded = next(running[number])
                    except StopIteration as end:
                        steps[number] = end.value
                        continue
                    if update is None:
                        learners.begin(yielded)
                    learners.backward(yielded, parts=len(parts))
                    update = yielded
            if update is not None:
                learners.apply(update, progress)
        return joined([steps[number] for number in range(len(parts))])

    def learning_rate(self, epoch: int = 0) -> float:
        """The main network's in the step that comes next."""
        return self.learners.learning_rate(self.session.method.main, self.progress(epoch))

    def progress(self, epoch: int) -> Progress:
        """Where training is."""
        return Progress(epoch, self.step, self.session.resolved.total_epochs, self.session.total_steps)

    def evaluate(self, epoch: int) -> dict[str, float]:
        """Test accuracy of the weights and of their average; of a method without labels, how good its features are."""
        remaining = self.session.resolved.total_epochs - 1 - epoch
        if remaining >= LAST_EPOCHS and (epoch + 1) % self.config.run.eval_every:
            return {}
        if not self.session.method.uses_labels:
            return watch_features(self.session.bundle, partial(self.predict, FeatureView(self.evaluated)))
        test = self.session.bundle.test
        if test is None:
            return {}
        labels = torch.from_numpy(test.labels.copy())
        networks = {"": self.session.method.model(self.learners.main.bare), "_ema": self.evaluated}
        logits = {kind: self.predict(network, test).logits for kind, network in networks.items()}
        return {
            f"test_{name}{kind}": metric(said, labels)
            for name, metric in METRICS.items()
            for kind, said in logits.items()
        }

    def predict(self, network: nn.Module, images: ImageSet) -> Outputs:
        """Outputs of a whole set."""
        return predict(images, network=network, session=self.session, device=self.fabric.device)

    def state(self) -> dict[str, dict[str, Tensor]]:
        """Every tensor that a resumed run needs."""
        return self.learners.state() | {"method": self.session.method.state_dict()}

    def facts(self) -> dict[str, Any]:
        """What else a resumed run needs: the step, and how half precision scales its loss."""
        return {"step": self.step, "precision": precision_state(self.fabric)}

    def load(self, checkpoint: Checkpoint) -> None:
        """Put back what `state` and `facts` gave."""
        try:
            self.learners.load(checkpoint)
            self.session.method.load_state_dict(checkpoint.part("method"))
        except (RuntimeError, ValueError, KeyError) as error:
            raise RunError(
                f"the checkpoint does not fit this network or method: {str(error)[:500]}. The run cannot be "
                "resumed with another network, method or number of classes than it began with"
            ) from error
        self.step = int(checkpoint.facts["step"])
        load_precision(self.fabric, checkpoint.facts.get("precision") or {})


def build_trainer(session: Session, fabric: Fabric) -> Trainer:
    """Move everything to the device, and make the processes one: synchronised norms, each with its slice of a batch."""
    config, method, device = session.config, session.method, fabric.device
    if config.run.compile:
        torch.use_deterministic_algorithms(True, warn_only=True)
    else:
        torch.set_deterministic_debug_mode("warn")  # the same, without importing the compiler to tell it
    # Nothing here reads memory it has not written; filling all of it first costs a sixth of a step.
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    method.to(device)
    if method.wants_samples():
        method.prepare(whole_set(session))
    learners = Learners(method, session.network, config, fabric)
    loader = Loader(
        session.samples,
        session.split,
        batch_size=config.optim.batch_size,
        mu=config.optim.mu,
        seed=config.run.seed,
        device=device,
        rank=distributed.rank(),
        world_size=distributed.world_size(),
        workers=config.data.workers,
        uses_labels=method.uses_labels,
        support=method.support(),
    )
    make_batch = BatchViews(method, session.views, build_crops(config, method, session.views, session.input_shape))
    return Trainer(session, fabric, learners, loader, make_batch, session.truth.to(device))


def predict(images: ImageSet, *, network: nn.Module, session: Session, device: torch.device) -> Outputs:
    """Outputs of a whole set.

    Args:
        images: training or test images of the session, or some of them.
        network: as the session trains it.
        session: says how images are seen.
        device: that the network is on.
    """
    return predict_set(
        network,
        session.as_seen(images),
        view=session.views.clean,
        batch_size=session.config.run.eval_batch_size,
        device=device,
        workers=session.config.data.workers,
    )


def train_in_memory(
    trainer: Trainer, display: Display, *, before: int = 0, after_epoch: Callable[[], None] = lambda: None
) -> None:
    """All epochs, without evaluations, checkpoints or logs.

    Args:
        trainer: before its first step.
        display: for progress.
        before: epochs of other runs that the same display has shown.
        after_epoch: called after each; may raise.
    """
    for epoch in range(trainer.session.resolved.total_epochs):
        row = trainer.train_epoch(epoch, display, meter=trainer.meter(epoch))
        display.epoch(before + epoch + 1, row)
        after_epoch()
