"""From a trained network to the run's labels: model and labels first, then the check, then what may be accepted."""

import math
from typing import Any

import numpy as np
import torch
from rich.console import Console

from protocon.base import distributed
from protocon.data.imageset import ImageSet
from protocon.engine.labelling.cross_check import cross_check_labels, held_out_splits
from protocon.engine.labelling.feature_map import feature_map
from protocon.engine.labelling.held_out import HeldOutLabels, write_held_out
from protocon.engine.labelling.judgement import judge
from protocon.engine.labelling.label_files import (
    labels_predicted_otherwise,
    labels_that_look_wrong,
    write_labels,
    write_opinions,
)
from protocon.engine.labelling.triage import Judgement, measure, sort_images
from protocon.engine.labelling.write_outputs import save_model, triage_threshold
from protocon.engine.loop.class_stats import cluster_facts
from protocon.engine.loop.metrics import confusion
from protocon.engine.loop.signals import StopSignals
from protocon.engine.loop.trainer import Trainer
from protocon.engine.setup.session import Session
from protocon.runs import layout
from protocon.runs.run_folder import RunFolder
from protocon.types import Outputs


def label_run(trainer: Trainer, folder: RunFolder, console: Console, signals: StopSignals) -> dict[str, Any]:
    """Write model, labels and the numbers behind the report; returns what the summary says of the labels.

    The model and labels.csv are on the disk before the held-out runs begin, so that a run which is interrupted among
    these has both; nothing counts as accepted there, since acceptance rests on the check. All processes take part.

    Args:
        trainer: after its last epoch.
        folder: of the run.
        console: for progress.
        signals: say when to stop.
    """
    session, writes = trainer.session, distributed.rank() == 0
    model = trainer.evaluated
    if writes:
        save_model(folder.model_file, session.complete(model), session)
    if not session.method.uses_labels:  # a pre-trained model knows no classes
        if session.config.run.report and (drawn := feature_map(trainer)) and writes:
            folder.write_json(folder.path / layout.FEATURE_MAP, drawn)
        return {}

    def predict(images: ImageSet) -> Outputs:
        return trainer.predict(model, images)

    judged = judge(session, predict)
    tested = None if session.bundle.test is None else predict(session.bundle.test)
    if writes:
        _write_facts(folder, session, tested)
        write_opinions(folder.opinions_file, session.bundle.train, judged)
        if held_out_splits(session):
            unchecked = sort_images(judged, math.inf)
            write_labels(folder.labels_file, session.bundle.train, judged, unchecked, listed=_listed(session))
    return _accept(
        folder, session, judged, cross_check_labels(session, trainer.fabric, folder, console, signals), writes=writes
    )


def _accept(
    folder: RunFolder, session: Session, judged: Judgement, held_out: HeldOutLabels | None, *, writes: bool
) -> dict[str, Any]:
    """labels.csv with what can be accepted, and cross_check.csv with what that rests on."""
    threshold, images = triage_threshold(session), session.bundle.train
    triage = sort_images(judged, threshold, held_out=held_out)
    listed = _listed(session)
    if writes:
        if held_out is not None:
            write_held_out(folder.cross_check_file, held_out, images, threshold)
        write_labels(folder.labels_file, images, judged, triage, listed=listed)
    measured: dict[str, Any] = {
        "triage": measure(judged, triage),
        "labels_that_look_wrong": labels_that_look_wrong(images, judged, triage),
    }
    if held_out is None:
        return measured
    return measured | {
        "labels_predicted_otherwise": labels_predicted_otherwise(images, judged, held_out, threshold),
        "cross_check": held_out.summary(threshold, listed),
    }


def _listed(session: Session) -> np.ndarray:
    """Positions of the labels that answer for a list to look at."""
    report, images = session.bundle.files, session.bundle.train
    names = set(report.listed) if report is not None else set()
    return np.array([place for place in session.split.labelled if images.ids[int(place)] in names], dtype=np.int64)


def _write_facts(folder: RunFolder, session: Session, tested: Outputs | None) -> None:
    """evaluation.json and clusters.json, where there is a test set and where the method has clusters."""
    test, names = session.bundle.test, session.bundle.train.class_names
    if tested is not None and test is not None:
        labels = torch.from_numpy(test.labels.copy())
        content = {
            "images": int((labels >= 0).sum()),
            "class_names": list(names),
            "confusion": confusion(tested.logits, labels),
        }
        folder.write_json(folder.evaluation_file, content)
    facts = cluster_facts(session.method.held(), names)
    if facts is not None:
        folder.write_json(folder.clusters_file, session.method.summary() | facts)
