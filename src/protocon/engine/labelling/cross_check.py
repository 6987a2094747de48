"""How far labels can be trusted where nobody knows the truth: each given label is held out once, and predicted.

The labels are dealt into a few groups. For each group the run is repeated as if its labels had not been given, and what
it then says of those images is compared with what the person had said. That is cheap where only heads are trained.
"""

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from rich.console import Console

from protocon.base import distributed
from protocon.data.imageset import ImageSet
from protocon.data.labels.label_split import Split
from protocon.engine.labelling.group_files import Found, group_key, load_group, save_group
from protocon.engine.labelling.held_out import HeldOutLabels, without_groups
from protocon.engine.labelling.judgement import judge
from protocon.engine.labelling.side_by_side import SideBySide, can_stack, prepare_methods, same_steps
from protocon.engine.labelling.triage import disputes
from protocon.engine.loop.display import Display
from protocon.engine.loop.signals import StopSignals
from protocon.engine.loop.trainer import build_trainer, predict, train_in_memory
from protocon.engine.setup.fabric import Fabric
from protocon.engine.setup.session import Session, build, settle
from protocon.runs.run_folder import RunFolder
from protocon.types import Outputs

Stop = Callable[[str, str], None]
"""Ends the process if a signal asks for it; takes what was interrupted, and what is saved."""


def held_out_splits(session: Session) -> list[Split]:
    """The run's split without each group of labels; empty where that is not asked for or not possible."""
    groups = session.config.run.cross_check
    return list(without_groups(session.split, groups)) if groups else []


def cross_check_labels(
    session: Session, fabric: Fabric, folder: RunFolder, console: Console, signals: StopSignals
) -> HeldOutLabels | None:
    """Repeat the run once for each group of labels, without them; None where it is not asked for or not possible.

    All processes take part. The session is left as it is; groups that an earlier process has finished are not repeated.

    Args:
        session: with its features, if its encoder is frozen; its settings leave nothing to choose.
        fabric: for the device.
        folder: of the run, which keeps finished groups.
        console: for progress.
        signals: say when to stop.
    """
    splits = held_out_splits(session)
    if not splits:
        return None
    files = [folder.held_out / f"group-{number:02d}.json" for number in range(1, len(splits) + 1)]
    keys = [group_key(session.config, split) for split in splits]
    kept = [load_group(*place) for place in zip(files, keys, strict=True)] if distributed.rank() == 0 else []
    parts: list[Found | None] = fabric.broadcast(kept, src=0)
    missing = [number for number, part in enumerate(parts) if part is None]
    stop = partial(_stop, signals, fabric, folder)
    for number, found in _missing_found(session, splits, missing, fabric, console, stop):
        if distributed.rank() == 0:
            save_group(files[number], keys[number], found)
        parts[number] = found
    rows = [np.concatenate(columns) for columns in zip(*filter(None, parts), strict=True)]
    order = np.argsort(rows[0], kind="stable")
    position, given, seen, confidence, undisputed = (column[order] for column in rows)
    left_out = len(session.split.labelled) - len(position)
    return HeldOutLabels(len(splits), position, given, seen, confidence, undisputed, left_out)


def _stop(signals: StopSignals, fabric: Fabric, folder: RunFolder, during: str, kept: str) -> None:
    """End here if a signal asks for it."""
    signals.stop_if_asked(fabric.device, during=during, kept=kept, resume=str(folder.path))


def _missing_found(
    whole: Session, splits: list[Split], missing: list[int], fabric: Fabric, console: Console, stop: Stop
) -> Iterator[tuple[int, Found]]:
    """What runs without them say of the labels of missing groups."""
    epochs = whole.resolved.total_epochs
    display = Display(
        console,
        title="checking your labels",
        total_epochs=len(splits) * epochs,
        steps_per_epoch=whole.resolved.steps_per_epoch,
        details=False,
    )
    if not missing:
        return
    sessions = [build(settle(whole.config, whole.bundle, split=split), whole.inputs) for split in splits]
    stacked = can_stack(whole)
    display.begin(0 if stacked else epochs * (len(splits) - len(missing)))
    with display:
        if stacked:
            yield from _side_by_side(whole, sessions, missing, fabric, display, stop)
        else:
            yield from _one_by_one(whole, sessions, missing, fabric, display, stop)


def _side_by_side(
    whole: Session, sessions: list[Session], missing: list[int], fabric: Fabric, display: Display, stop: Stop
) -> Iterator[tuple[int, Found]]:
    """Missing groups, all trained at once.

    The others are trained too, and not looked at: how rows are padded must not depend on which groups are missing.
    """
    done = 0
    prepare_methods(sessions, fabric.device)
    for part in same_steps(sessions):
        runs = SideBySide([sessions[number] for number in part], fabric.device)
        for epoch in range(runs.epochs):
            runs.train_epoch(epoch)
            done += len(part)
            display.epoch(done, {})
            stop("the check of your labels", "the model and its labels are saved")
        for number, network in zip(part, runs.networks(), strict=True):
            if number in missing:
                session = sessions[number]
                seen = partial(predict, network=network, session=session, device=fabric.device)
                yield number, _judged(whole, session, seen)


def _one_by_one(
    whole: Session, sessions: list[Session], missing: list[int], fabric: Fabric, display: Display, stop: Stop
) -> Iterator[tuple[int, Found]]:
    """Missing groups, one after the other."""
    epochs, ready = whole.resolved.total_epochs, len(sessions) - len(missing)
    for done, number in enumerate(missing, start=ready):
        trainer = build_trainer(sessions[number], fabric)
        during = f"the check of your labels, group {number + 1} of {len(sessions)}"
        kept = "the model, its labels and the groups before this one are saved"
        train_in_memory(trainer, display, before=done * epochs, after_epoch=partial(stop, during, kept))
        yield number, _judged(whole, sessions[number], partial(trainer.predict, trainer.evaluated))


def _judged(whole: Session, session: Session, predict: Callable[[ImageSet], Outputs]) -> Found:
    """What a run without some labels says of their images."""
    judged = judge(session, predict)
    position = np.setdiff1d(whole.split.labelled, session.split.labelled)
    given = whole.split.labels[np.searchsorted(whole.split.labelled, position)]
    refined = judged.refined
    undisputed = disputes(judged)[position] == 0
    return position, given, refined.label[position], refined.confidence[position], undisputed
