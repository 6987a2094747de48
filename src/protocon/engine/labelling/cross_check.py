"""How far labels can be trusted where nobody knows the truth: each given label is held out once, and predicted.

The labels are dealt into a few groups. For each group the run is repeated as if its labels had not been given, and what
it then says of those images is compared with what the person had said. That is cheap where only heads are trained.
"""

from collections.abc import Callable
from functools import partial

import numpy as np
from lightning_fabric import Fabric
from rich.console import Console

from protocon.base import distributed
from protocon.data.labels.label_split import Split
from protocon.engine.labelling.group_files import Found, group_key, load_group, save_group
from protocon.engine.labelling.held_out import HeldOutLabels, without_groups
from protocon.engine.labelling.judgement import judge
from protocon.engine.labelling.triage import disputes
from protocon.engine.loop.display import Display
from protocon.engine.loop.signals import StopSignals
from protocon.engine.loop.trainer import build_trainer, train_in_memory
from protocon.engine.setup.session import Session, build, settle
from protocon.runs.run_folder import RunFolder


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
    parts = _all_found(session, splits, fabric, folder, console, signals)
    rows = [np.concatenate(columns) for columns in zip(*parts, strict=True)]
    order = np.argsort(rows[0], kind="stable")
    position, given, found, confidence, undisputed = (column[order] for column in rows)
    left_out = len(session.split.labelled) - len(position)
    return HeldOutLabels(len(splits), position, given, found, confidence, undisputed, left_out)


def _all_found(
    session: Session, splits: list[Split], fabric: Fabric, folder: RunFolder, console: Console, signals: StopSignals
) -> list[Found]:
    """What is found at the images of each group: as an earlier process kept it, or by a run without their labels."""
    epochs = session.resolved.total_epochs
    files = [folder.held_out / f"group-{number:02d}.json" for number in range(1, len(splits) + 1)]
    keys = [group_key(session.config, split) for split in splits]
    parts: list[Found | None] = [
        fabric.broadcast(load_group(file, key) if distributed.rank() == 0 else None, src=0)
        for file, key in zip(files, keys, strict=True)
    ]
    display = Display(
        console,
        title="checking your labels",
        total_epochs=len(splits) * epochs,
        steps_per_epoch=session.resolved.steps_per_epoch,
        details=False,
    )
    done = epochs * sum(part is not None for part in parts)
    display.begin(done)
    with display:
        for number, split in enumerate(splits):
            if parts[number] is None:
                stop = partial(
                    signals.stop_if_asked,
                    fabric.device,
                    during=f"the check of your labels, group {number + 1} of {len(splits)}",
                    kept="the model, its labels and the groups before this one are saved",
                    resume=str(folder.path),
                )
                found = _found(session, split, fabric, display, before=done, after_epoch=stop)
                if distributed.rank() == 0:
                    save_group(files[number], keys[number], found)
                parts[number], done = found, done + epochs
    return [part for part in parts if part is not None]


def _found(
    whole: Session,
    split: Split,
    fabric: Fabric,
    display: Display,
    *,
    before: int,
    after_epoch: Callable[[], None],
) -> Found:
    """Train without a group of labels, and say what is found at their images."""
    session = build(settle(whole.config, whole.bundle, split=split), whole.inputs)
    trainer = build_trainer(session, fabric)
    train_in_memory(trainer, display, before=before, after_epoch=after_epoch)
    model = trainer.evaluated
    judged = judge(session, lambda images: trainer.predict(model, images))
    position = np.setdiff1d(whole.split.labelled, split.labelled)
    given = whole.split.labels[np.searchsorted(whole.split.labelled, position)]
    refined = judged.refined
    undisputed = disputes(judged)[position] == 0
    return position, given, refined.label[position], refined.confidence[position], undisputed
