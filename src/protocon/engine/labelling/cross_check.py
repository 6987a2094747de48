"""How far labels can be trusted where nobody knows the truth: each given label is hidden once, and looked for again.

The labels are dealt into a few groups. For each group the run is repeated as if its labels had not been given, and what
it then says of those images is held against what the person had said. That is cheap where only heads are trained.
"""

from dataclasses import replace

import numpy as np
from lightning_fabric import Fabric
from rich.console import Console

from protocon.data.labels.label_split import Split
from protocon.engine.labelling.held_out import HiddenLabels, without_groups
from protocon.engine.labelling.judgement import judge
from protocon.engine.labelling.triage import disputes
from protocon.engine.loop.trainer import build_trainer, train_in_memory
from protocon.engine.setup.session import Session, prepare


def hide_labels(session: Session, fabric: Fabric, console: Console) -> HiddenLabels | None:
    """Repeat the run once for each group of labels, without them; None where it is not asked for or not possible.

    All processes take part. Nothing is written, and the session is left as it is.

    Args:
        session: with its features, if its encoder is frozen; its settings leave nothing to choose.
        fabric: for the device.
        console: for progress.
    """
    groups = int(session.config.run.cross_check)
    if groups == 0:
        return None
    splits = list(without_groups(session.split, groups))
    if not splits:
        return None
    parts = []
    for number, split in enumerate(splits, start=1):
        title = f"labels hidden {number}/{len(splits)}"
        parts.append(_found_again(_session_with(session, split), session.split, fabric, console, title))
    rows = [np.concatenate(columns) for columns in zip(*parts, strict=True)]
    order = np.argsort(rows[0], kind="stable")
    position, given, found, confidence, undisputed = (column[order] for column in rows)
    left_out = len(session.split.labelled) - len(position)
    return HiddenLabels(len(splits), position, given, found, confidence, undisputed, left_out)


def _session_with(session: Session, split: Split) -> Session:
    """The same run from other labels: network and method anew, encoder and features shared."""
    fresh = prepare(session.config, session.bundle, split=split)
    return replace(fresh, frozen=session.frozen, features=session.features, views=session.views)


def _found_again(
    session: Session, whole: Split, fabric: Fabric, console: Console, title: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Positions of the labels that this session does not have, and what it finds there after training."""
    trainer = build_trainer(session, fabric)
    train_in_memory(trainer, console, title=title)
    averaged = trainer.evaluated
    judged = judge(session, lambda images: trainer.predict(averaged, images))
    position = np.setdiff1d(whole.labelled, session.split.labelled)
    given = whole.labels[np.searchsorted(whole.labelled, position)]
    refined = judged.refined
    undisputed = disputes(judged)[position] == 0
    return position, given, refined.label[position], refined.confidence[position], undisputed
