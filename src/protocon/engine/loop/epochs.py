"""The epochs of a run, from the first or from its newest checkpoint, and what they add up to."""

import json
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console

from protocon.base import distributed
from protocon.data.registry import OWN
from protocon.engine.loop.class_stats import class_row
from protocon.engine.loop.display import Display
from protocon.engine.loop.guards import Guards, stopped_row
from protocon.engine.loop.rank_check import check_same_start
from protocon.engine.loop.saver import Saver, Start, find_start
from protocon.engine.loop.signals import StopSignals
from protocon.engine.loop.trackers import Trackers
from protocon.engine.loop.trainer import LAST_EPOCHS, Trainer, build_trainer
from protocon.engine.setup.announce import frequencies_line
from protocon.engine.setup.fabric import Fabric
from protocon.engine.setup.session import Session
from protocon.errors import TrainingError
from protocon.runs.run_folder import RunFolder


def train_run(
    session: Session, fabric: Fabric, folder: RunFolder, console: Console, signals: StopSignals
) -> tuple[Trainer, dict[str, Any]]:
    """Train to the end, resuming from the folder's newest checkpoint; returns the trained state and the run's summary.

    Args:
        session: complete.
        fabric: for the device.
        folder: of the run.
        console: for progress.
        signals: say when to stop.
    """
    started = time.monotonic()
    trainer = build_trainer(session, fabric)
    config, resolved = session.config, session.resolved
    own = config.data.name in OWN  # whoever runs a benchmark knows what losses are
    display = Display(
        console,
        title="training" if own else f"{config.data.name} · {config.method_name}",
        total_epochs=resolved.total_epochs,
        steps_per_epoch=resolved.steps_per_epoch,
        details=not own,
    )
    start = find_start(folder, fabric, checkpoint_every=config.run.checkpoint_every, say=display.say)
    if start.checkpoint is not None:
        trainer.load(start.checkpoint)
    check_same_start(start.epoch, trainer.step, device=fabric.device)
    display.begin(start.epoch)
    prior = session.method.estimated_prior()
    if prior is not None and not start.epoch:
        display.say(frequencies_line(prior.tolist(), session.bundle.train.class_names))
    writes = distributed.rank() == 0
    if writes:
        folder.keep_epochs(start.epoch, display.say)
    with (
        display,
        Trackers(folder.path, config, enabled=writes, first_epoch=start.epoch) as scalars,
    ):
        _train_epochs(trainer, folder, start, display=display, scalars=scalars, signals=signals)
    return trainer, summarise(trainer, folder, time.monotonic() - started)


def _train_epochs(
    trainer: Trainer, folder: RunFolder, start: Start, *, display: Display, scalars: Trackers, signals: StopSignals
) -> None:
    """The epochs that are left. Everything an epoch adds to the run's files is there before its checkpoint is."""
    session, config = trainer.session, trainer.config
    total = session.resolved.total_epochs
    facts = session.method.summary()
    clusters = facts.get("clusters")
    names = session.bundle.train.class_names
    guards = start.guards(
        Guards(
            class_names=names,
            clusters=None if clusters is None else int(clusters),
            total_epochs=total,
            chance_loss=facts.get("chance_loss"),
        )
    )
    saver = Saver(trainer, folder, guards=guards, signals=signals, minutes=config.run.checkpoint_minutes)
    for epoch in range(start.epoch, total):
        began = time.monotonic()
        meter = trainer.meter(epoch)
        if epoch == start.epoch:
            meter, began = start.meter(meter), began - start.seconds
        after_step = partial(saver.after_step, epoch, meter, began)
        try:
            row = trainer.train_epoch(epoch, display, meter=meter, after_step=after_step)
        except TrainingError as error:
            if distributed.rank() == 0:
                folder.append(folder.warnings_file, stopped_row(epoch, error))
            raise
        row |= trainer.evaluate(epoch)
        display.epoch(epoch + 1, row)
        if remark := session.method.remark():
            display.say(f"epoch {epoch + 1}: {remark}")
        warnings = guards.check(row, meter.labels_by_class())
        for warning in warnings:
            display.say(f"warning in epoch {epoch + 1}: {warning['message']}. {warning['advice']}")
        if distributed.rank() == 0:
            folder.append(folder.metrics_file, row)
            _append_classes(folder, session, epoch)
            for warning in warnings:
                folder.append(folder.warnings_file, warning)
            folder.append(folder.timings_file, {"epoch": epoch, "seconds": time.monotonic() - began})
            scalars.write(row)
        saver.after_epoch(epoch, due=(epoch + 1) % config.run.checkpoint_every == 0 or epoch + 1 == total)
        distributed.barrier()


def _append_classes(folder: RunFolder, session: Session, epoch: int) -> None:
    """Add an epoch's line to classes.jsonl, where the method and the data know enough for one."""
    row = class_row(session.method.held(), session.truth.numpy(), session.bundle.train.class_names)
    if row is not None:
        folder.append(folder.classes_file, {"epoch": epoch} | row)


_OF_SOME = (
    *("clusters_in_use", "smallest_cluster", "largest_cluster"),
    *("loss", "knn_accuracy", "feature_spread", "projection_spread"),
)
"""Numbers of the last epoch that some methods have."""


def summarise(trainer: Trainer, folder: RunFolder, seconds: float) -> dict[str, Any]:
    """What `train --json` prints.

    Args:
        trainer: after the last epoch.
        folder: of the run, with its metrics.
        seconds: that training took.
    """
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
            "test_macro_accuracy": mean_of_last("test_macro_accuracy_ema"),
            "test_accuracy_last_epoch": last.get("test_accuracy_ema"),
            "pseudo_label_accuracy": last.get("pseudo_accuracy_refined"),
            "retention": last.get("retention"),
            "seconds": seconds if spent < seconds else spent,
            "peak_memory_mib": peak_memory_mib(),
            "warnings": folder.warnings(),
        }
        | {key: last[key] for key in _OF_SOME if key in last}
        | session.method.summary()
    )


def peak_memory_mib() -> float | None:
    """The most main memory that this program has held so far; None where the system does not tell.

    On Linux not by `getrusage`, which also counts the program that started this one.
    """
    with suppress(OSError):
        for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 2**10
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
