"""labels.csv, which a person opens in a spreadsheet, and opinions.csv, which holds the rest."""

import csv
import io
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from protocon.base.atomic import write_bytes
from protocon.data.imageset import ImageSet
from protocon.data.labels.own_table import FROM_LIST
from protocon.engine.labelling.held_out import HeldOutLabels, Suspects
from protocon.engine.labelling.triage import NONE, Judgement, Opinion, Triage
from protocon.runs.layout import LABEL_COLUMNS, OPINION_COLUMNS

_BYTE_ORDER_MARK = "\ufeff"
"""Without it Excel takes UTF-8 for the local code page: ü becomes Ã¼."""


def write_labels(
    path: Path, images: ImageSet, judged: Judgement, triage: Triage, *, listed: np.ndarray | None = None
) -> None:
    """One row per image of the training set, in its order, with the columns `LABEL_COLUMNS`.

    Args:
        path: CSV file.
        images: the training set.
        judged: what is believed of every image.
        triage: what to do with it.
        listed: positions whose labels answer for a list to look at.
    """
    reasons = _reasons(judged, triage, names := _names(images))
    for row in () if listed is None else listed:
        reasons[row] = f"{reasons[row]}; {FROM_LIST}" if reasons[row] else FROM_LIST
    columns = (
        names[judged.refined.label],
        _scores(triage.looks_like),
        triage.words,
        np.where(triage.rank > 0, triage.rank.astype(str), ""),
        names[judged.given],
        names[triage.looks_like.label],
        reasons,
    )
    _write(path, LABEL_COLUMNS, images.ids, columns)


def write_opinions(path: Path, images: ImageSet, judged: Judgement) -> None:
    """What classifier, cluster and prototype say of every image, row by row as in labels.csv.

    Args:
        path: of the CSV.
        images: the training set, for names.
        judged: every opinion of every image.
    """
    names = _names(images)
    agreement = np.where(judged.classifier.label == judged.cluster.label, "yes", "no").astype(object)
    agreement[judged.cluster.label == NONE] = ""
    columns = (
        np.where(judged.given != NONE, "labelled", "unlabelled"),
        names[judged.classifier.label],
        _scores(judged.classifier),
        names[judged.cluster.label],
        _scores(judged.cluster),
        agreement,
        names[judged.prototype.label],
        _scores(judged.prototype),
        names[judged.truth],
    )
    _write(path, OPINION_COLUMNS, images.ids, columns)


def labels_that_look_wrong(images: ImageSet, judged: Judgement, triage: Triage) -> list[dict[str, Any]]:
    """Given labels in doubt, in the order of the list to look at: file, given, looks_like, confidence.

    Args:
        images: the training set, for names.
        judged: every opinion of every image.
        triage: what is to be done with each.
    """
    doubted = np.flatnonzero((judged.given != NONE) & (triage.rank > 0))
    order = doubted[np.argsort(triage.rank[doubted])]
    seen = triage.looks_like
    return _doubts(images, judged, Suspects(order, seen.label[order], seen.confidence[order]))


def labels_predicted_otherwise(
    images: ImageSet, judged: Judgement, held_out: HeldOutLabels, threshold: float
) -> list[dict[str, Any]]:
    """Given labels that a run without them did not predict, but is not sure enough about to call them wrong.

    Args:
        images: the training set, for names.
        judged: every opinion of every image.
        held_out: what runs without a label say of it.
        threshold: confidence from which such a run counts as sure.
    """
    return _doubts(images, judged, held_out.otherwise(threshold))


def _doubts(images: ImageSet, judged: Judgement, doubted: Suspects) -> list[dict[str, Any]]:
    """For result.json: file, given, looks_like, confidence."""
    names = _names(images)
    return [
        {
            "file": images.ids[int(row)],
            "given": names[judged.given[row]],
            "looks_like": names[label],
            "confidence": round(float(confidence), 4),
        }
        for row, label, confidence in zip(doubted.position, doubted.looks_like, doubted.confidence, strict=True)
    ]


def _names(images: ImageSet) -> np.ndarray:
    """Class names by number; `NONE` = −1 finds the last entry, which is empty."""
    return np.array([*images.class_names, ""], dtype=object)


def _scores(opinion: Opinion) -> np.ndarray:
    """Scores as text, empty where there is no opinion."""
    scores = np.char.mod("%.4f", opinion.confidence.astype(np.float64)).astype(object)
    scores[opinion.label == NONE] = ""
    return scores


def _reasons(judged: Judgement, triage: Triage, names: np.ndarray) -> np.ndarray:
    """Why an image is in the list to look at, in plain words."""
    reasons = np.full(len(judged.given), "", dtype=object)
    for row in np.flatnonzero(triage.rank > 0):
        if judged.given[row] != NONE:
            sure = f"{triage.looks_like.confidence[row]:.3f}"
            reasons[row] = (
                f"labelled {names[judged.given[row]]}, looks like {names[triage.looks_like.label[row]]} ({sure})"
            )
            continue
        seen = dict.fromkeys(opinion.label[row] for opinion in (judged.refined, *judged.others))
        classes = [names[label] for label in seen if label != NONE]
        reasons[row] = f"opinions differ: {' or '.join(classes)}" if len(classes) > 1 else "not sure enough"
    return reasons


def _write(path: Path, heading: tuple[str, ...], ids: Iterable[str], columns: tuple[np.ndarray, ...]) -> None:
    text = io.StringIO(newline="")
    text.write(_BYTE_ORDER_MARK)
    writer = csv.writer(text)
    writer.writerow(heading)
    writer.writerows(zip(ids, *(column.tolist() for column in columns), strict=True))
    # A file name need not be valid UTF-8: its bytes are written as they are.
    write_bytes(path, text.getvalue().encode("utf-8", "surrogateescape"))
