"""A fair estimate of how many labels are right: a person answers for a few images drawn at random.

Given labels are no fair sample: people pick clear images, and review lists pick hard ones. A random sample is fair, and
the model's own confidences make its interval narrower (prediction-powered inference, Angelopoulos et al., 2023).
"""

import csv
import hashlib
import io
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from protocon.base.atomic import write_bytes
from protocon.data.files.names import shown
from protocon.data.labels.similar_names import meant_class
from protocon.errors import DataError, RunError
from protocon.report.intervals import Z95
from protocon.report.label_table import RunLabels, read_labels, read_names
from protocon.runs import layout

IMAGES = 30
"""How many are drawn unless told otherwise."""
_PSEUDO = 2
"""Right and wrong answers that are added before the interval is taken, as Agresti and Coull do: thirty right answers do
not prove that all are right."""
COMBINED = "the estimate combines them with the model's confidences on all images"
"""Said of the answers, since their share alone is another figure than the estimate."""
NOBODY_CAN_TELL = "?"
"""An answer that counts as wrong without being the name of a class."""
_SHOWN = 5
"""Misspelt answers that a message names."""


@dataclass(frozen=True)
class Drawn:
    """Images of an audit, in the order in which they were drawn."""

    rows: np.ndarray
    """Rows of labels.csv."""
    names: tuple[str, ...]
    table: RunLabels
    population: int
    """Images that they were drawn from: all that the run was given no label of."""


def draw_audit(run: Path, *, count: int = IMAGES, seed: int = 0) -> Drawn:
    """Draw images without a given label at random: the same ones for the same run, seed and count.

    Args:
        run: its folder.
        count: how many images.
        seed: decides which.
    """
    file = run / "labels.csv"
    if not file.is_file():
        raise RunError(f"{run} has no labels.csv: it is not a run folder, or its training has not finished")
    table = read_labels(file)
    rows = np.flatnonzero(table.unlabelled)
    if not len(rows):
        raise RunError(f"{run}: every image has a given label, so there is nothing to audit")
    names = read_names(file, rows)
    chosen = sorted(rows.tolist(), key=lambda row: _order(names[row], seed))[:count]
    return Drawn(np.array(chosen), tuple(names[row] for row in chosen), table, len(rows))


def _order(name: str, seed: int) -> bytes:
    """Sorting by this shuffles names in a way that has nothing to do with what the images show."""
    return hashlib.sha256(f"audit {seed}\0{name}".encode("utf-8", "surrogateescape")).digest()


def write_sheet(path: Path, drawn: Drawn) -> None:
    """A table to fill in: what the model says is not in it, since it would lead the answers."""
    if path.is_file():
        raise RunError(f"{path} is there already; fill it in, or remove it to draw again")
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(("file", "label"))
    writer.writerows((name, "") for name in drawn.names)
    write_bytes(path, ("\ufeff" + text.getvalue()).encode("utf-8", "surrogateescape"))


def missing_answers(drawn: Drawn, answers: dict[str, str]) -> list[str]:
    """Drawn images that have no answer."""
    return [name for name in drawn.names if not answers.get(name)]


@dataclass(frozen=True)
class AuditEstimate:
    """A share with its 95 % interval."""

    share: float
    low: float
    high: float


def powered_estimate(right: np.ndarray, sure: np.ndarray, everywhere: float, population: int) -> AuditEstimate:
    """Share of right labels among all images: mean(f on all) + mean(right − f on the audit).

    The first term is known exactly, so that only the second one varies, and the less so the better the confidences f
    tell right from wrong. Whether f is calibrated does not matter: the second term corrects it.

    Args:
        right: whether the model is right on each audited image, (n,).
        sure: its confidence there, f, (n,).
        everywhere: mean of f over the whole population.
        population: how many images that is.
    """
    miss = right.astype(float) - sure
    share = everywhere + float(miss.mean())
    centre = float(sure.mean())
    padded = np.concatenate([miss, np.full(_PSEUDO, 1 - centre), np.full(_PSEUDO, -centre)])
    left = 1 - len(right) / max(population, len(right))  # nothing is left to chance once all images are audited
    half = Z95 * math.sqrt(float(padded.var(ddof=1)) / len(padded) * left)
    middle = everywhere + float(padded.mean()) if left else share
    low, high = max(0.0, middle - half), min(1.0, middle + half)
    return AuditEstimate(min(max(share, low), high), low, high)


def judge_audit(run: Path, drawn: Drawn, answers: dict[str, str], *, seed: int) -> dict[str, Any]:
    """What the answers say of the run's labels; for audit.json.

    Args:
        run: folder of the run.
        drawn: the images.
        answers: of each image, by file name; a class that the run does not know counts against it.
        seed: that the images were drawn with.
    """
    if missing := missing_answers(drawn, answers):
        raise DataError(
            f"{len(missing):,} of {len(drawn.names):,} images have no answer, the first is {missing[0]!r}. Answer all: "
            "leaving out the hard ones would make the estimate too good. Write `?` where nobody can tell."
        )
    table, rows = drawn.table, drawn.rows
    label, confidence = table.labels["looks_like"], table.scores["refined_confidence"]
    said = [table.class_names[int(label[row])] for row in rows]
    right = np.array([answers[name] == own for name, own in zip(drawn.names, said, strict=True)])
    sure = np.nan_to_num(confidence[rows].astype(float))
    everywhere = float(np.nan_to_num(confidence[table.unlabelled].astype(float)).mean())
    found = powered_estimate(right, sure, everywhere, drawn.population)
    accepted = table.accepted[rows]
    classes = {*table.class_names, NOBODY_CAN_TELL}
    return {
        "run": str(run),
        "seed": seed,
        "images": len(rows),
        "population": drawn.population,
        "right": int(right.sum()),
        "accuracy": found.share,
        "interval": [found.low, found.high],
        "accepted": int(accepted.sum()),
        "accepted_right": int(right[accepted].sum()),
        "no_class": sorted({answers[name] for name in drawn.names} - classes),
        "answers": [
            {"file": name, "answer": answers[name], "label": own, "confidence": round(float(value), 4)}
            for name, own, value in zip(drawn.names, said, sure, strict=True)
        ],
    }


def keep_audit(run: Path, content: dict[str, Any]) -> None:
    """Write audit.json."""
    write_bytes(run / layout.AUDIT, (json.dumps(content, indent=1) + "\n").encode())


def audit_lines(content: dict[str, Any]) -> list[str]:
    """What a person reads of it."""
    low, high = content["interval"]
    lines = [
        f"About {100 * content['accuracy']:.0f} % of the labels are right (95 % interval {100 * low:.0f} to "
        f"{100 * high:.0f} %), by a random audit: {content['right']} of {content['images']} answers agree; "
        f"{COMBINED}."
    ]
    if content["accepted"]:
        lines.append(f"Of {content['accepted']} accepted labels among them, {content['accepted_right']} are right.")
    wrong = [row for row in content["answers"] if row["answer"] != row["label"]]
    strange = content.get("no_class", ())  # audits of earlier versions lack it
    for row in wrong:
        line = f"  {row['file']} is {row['answer']}, labelled {row['label']} ({row['confidence']:.3f})"
        known = f"; {shown(row['answer'])!r} is no class of this run" if row["answer"] in strange else ""
        lines.append(line + known)
    return lines


def reuse_line(source: Path, answers: Sequence[str]) -> str:
    """Whether the answers can be labels of the next run, and what then measures that run.

    Args:
        source: the file that has them.
        answers: all of them; `?` is no label.
    """
    without = f", but for those with `{NOBODY_CAN_TELL}`" if NOBODY_CAN_TELL in answers else ""
    return (
        f"To use the answers as labels of the next run, add those in {source} to your table of labels{without}. A run "
        "that learnt from them is not measured by them: audit that run too, which draws other images."
    )


def known_answers(names: Sequence[str], class_names: Sequence[str], answers: dict[str, str]) -> dict[str, str]:
    """Answers with class names spelled as the run does, capitals and spaces apart; misspelt ones are refused.

    Args:
        names: of the images that were drawn.
        class_names: of the run.
        answers: by image, as a person wrote them.
    """
    found = {name: _spelled(answers[name], class_names) for name in names if name in answers}
    slips = [line for name, said in found.items() if (line := slip(name, said, class_names))]
    if slips:
        more = f"\n  and {len(slips) - _SHOWN:,} more" if len(slips) > _SHOWN else ""
        raise DataError(
            f"{len(slips):,} of {len(found):,} answers may be misspelt, and would count as wrong:"
            + "".join(f"\n  {line}" for line in slips[:_SHOWN])
            + f"{more}\nCorrect them. Where an image shows none of the run's classes, write `{NOBODY_CAN_TELL}`, which "
            "counts as wrong."
        )
    return found


def _spelled(said: str, class_names: Sequence[str]) -> str:
    """An answer as the run spells it, if it is one of its classes."""
    known = {"".join(name.casefold().split()): name for name in class_names}
    return known.get("".join(said.casefold().split()), said.strip())


def slip(name: str, said: str, class_names: Sequence[str]) -> str:
    """What is probably misspelt in an answer, for a person to correct; empty where nothing is.

    Args:
        name: of the image.
        said: the answer.
        class_names: of the run.
    """
    if _spelled(said, class_names) in class_names or not (meant := meant_class(said, class_names)):
        return ""
    return f"{shown(name)}: {shown(said)!r} is no class of this run; did you mean {shown(meant)}?"
