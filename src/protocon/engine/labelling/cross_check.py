"""How far labels can be trusted where nobody knows the truth: each given label is held out once, and predicted.

The labels are dealt into a few groups. For each group the run is repeated as if its labels had not been given, and what
it then says of those images is compared with what the person had said. That is cheap where only heads are trained.
"""

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
from protocon.engine.loop.signals import StopSignals
from protocon.engine.loop.trainer import build_trainer, train_in_memory
from protocon.engine.setup.session import Session, build, settle
from protocon.runs.run_folder import RunFolder


def held_out_splits(session: Session) -> list[Split]:
    """The run's split without each group of labels; empty where that is not asked for or not possible."""
    groups = session.config.run.cross_check
    return list(without_groups(session.split, groups)) if groups else []


def hold_out(
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
    parts: list[Found] = []
    for number, split in enumerate(splits, start=1):
        file, key = folder.held_out / f"group-{number:02d}.json", group_key(session.config, split)
        kept = fabric.broadcast(load_group(file, key) if distributed.rank() == 0 else None, src=0)
        if kept is None:
            kept = _found(session, split, fabric, console, signals, folder, f"held-out labels {number}/{len(splits)}")
            if distributed.rank() == 0:
                save_group(file, key, kept)
        parts.append(kept)
    rows = [np.concatenate(columns) for columns in zip(*parts, strict=True)]
    order = np.argsort(rows[0], kind="stable")
    position, given, found, confidence, undisputed = (column[order] for column in rows)
    left_out = len(session.split.labelled) - len(position)
    return HeldOutLabels(len(splits), position, given, found, confidence, undisputed, left_out)


def _found(
    whole: Session,
    split: Split,
    fabric: Fabric,
    console: Console,
    signals: StopSignals,
    folder: RunFolder,
    title: str,
) -> Found:
    """Train without a group of labels, and say what is found at their images."""
    session = build(settle(whole.config, whole.bundle, split=split), whole.inputs)
    trainer = build_trainer(session, fabric)
    stop = partial(
        signals.stop_if_asked,
        fabric.device,
        during=title,
        kept="the model, its labels and the groups before this one are saved",
        resume=str(folder.path),
    )
    train_in_memory(trainer, console, title=title, after_epoch=stop)
    model = trainer.evaluated
    judged = judge(session, lambda images: trainer.predict(model, images))
    position = np.setdiff1d(whole.split.labelled, split.labelled)
    given = whole.split.labels[np.searchsorted(whole.split.labelled, position)]
    refined = judged.refined
    undisputed = disputes(judged)[position] == 0
    return position, given, refined.label[position], refined.confidence[position], undisputed
