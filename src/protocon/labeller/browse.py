"""What the model thinks, for looking through: by class, the doubtful, look-alikes, odd labels, strangers."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from protocon.labeller.desk import Desk
from protocon.labeller.opinion import ModelOpinion

GROUP = 20
"""Look-alikes that are accepted with one key."""
PAGE = 60
_SEEDS = 4000


@dataclass(frozen=True)
class Shown:
    """An image with what the model thinks of it."""

    number: int
    guess: str
    """Class id; empty where there is none."""
    sure: float


@dataclass(frozen=True)
class LookAlikes:
    """Images that look alike, and the class that they probably have."""

    class_id: str
    images: tuple[Shown, ...]


def view(desk: Desk, name: str, *, class_id: str = "", order: str = "doubtful", page: int = 0) -> list[Shown]:
    """A page of images.

    Args:
        desk: whose.
        name: class, doubtful, wrong, strangers or mine.
        class_id: for `class` and `mine`.
        order: doubtful or sure first, for `class`.
        page: from 0.
    """
    opinion = desk.opinion
    rows = _VIEWS[name](desk, opinion, class_id, order)
    return [_shown(opinion, int(row)) for row in rows[page * PAGE : (page + 1) * PAGE]]


def better(desk: Desk, number: int) -> str:
    """The class that fits a doubted label better; empty if it is not doubted."""
    opinion = desk.opinion
    row = opinion.rows.get(number)
    return next((opinion.known.classes[c] for r, c in opinion.doubted if r == row), "")


def _free(desk: Desk, opinion: ModelOpinion) -> np.ndarray:
    """Rows that nobody has answered."""
    free = ~opinion.known.closed
    for number in desk.closed():
        if (row := opinion.rows.get(number)) is not None:
            free[row] = False
    rows: np.ndarray = np.flatnonzero(free)
    return rows


def _of_class(desk: Desk, opinion: ModelOpinion, class_id: str, order: str) -> np.ndarray:
    rows = _free(desk, opinion)
    if not opinion.probs.size or class_id not in opinion.known.classes or not len(rows):
        return rows[:0]
    rows = rows[opinion.guess[rows] == opinion.known.classes.index(class_id)]
    sure = opinion.sure[rows]
    ordered: np.ndarray = rows[np.argsort(-sure if order == "sure" else sure, kind="stable")]
    return ordered


def _doubtful(desk: Desk, opinion: ModelOpinion, _class: str, _order: str) -> np.ndarray:
    rows = _free(desk, opinion)
    if not opinion.probs.size or not len(rows):
        return rows[:0]
    return rows[np.argsort(opinion.sure[rows], kind="stable")]


def _wrong(desk: Desk, opinion: ModelOpinion, _class: str, _order: str) -> np.ndarray:
    labelled = desk.labelled()
    rows = [
        row
        for row, _ in opinion.doubted
        if labelled.get(int(opinion.numbers[row])) == opinion.known.classes[opinion.known.labels[row]]
    ]
    return np.array(rows, dtype=np.int64)


def _strangers(desk: Desk, opinion: ModelOpinion, _class: str, _order: str) -> np.ndarray:
    """Those answered "none of these" first, then the unanswered ones that are least like any labelled image."""
    none = [opinion.rows[n] for n, answer in desk.closed().items() if answer.do == "none" and n in opinion.rows]
    rows = _free(desk, opinion)
    if not opinion.probs.size or not len(rows):
        return np.array(none, dtype=np.int64)
    far = rows[np.argsort(opinion.likeness[rows], kind="stable")]
    return np.concatenate([np.array(none, dtype=np.int64), far[: 10 * PAGE]])


def _mine(desk: Desk, opinion: ModelOpinion, class_id: str, _order: str) -> np.ndarray:
    """One's own labels, the latest first, also of images that have no features yet."""
    numbers = [n for n, label in desk.labelled().items() if not class_id or label == class_id]
    return np.array([opinion.rows[n] for n in reversed(numbers) if n in opinion.rows], dtype=np.int64)


_VIEWS: dict[str, Callable[[Desk, ModelOpinion, str, str], np.ndarray]] = {
    "class": _of_class,
    "doubtful": _doubtful,
    "wrong": _wrong,
    "strangers": _strangers,
    "mine": _mine,
}
VIEWS = tuple(_VIEWS)


def groups(desk: Desk, *, count: int, class_id: str = "", skip: int = 0) -> list[LookAlikes]:
    """Groups of look-alikes that nobody has answered, each around an image that the model is sure of.

    Before there is a model, around the picks.

    Args:
        desk: whose.
        count: how many groups.
        class_id: only of this class.
        skip: pass over so many groups.
    """
    opinion = desk.opinion
    rows = _free(desk, opinion)
    if not len(rows):
        return []
    if opinion.probs.size:
        if class_id in opinion.known.classes:
            rows = rows[opinion.guess[rows] == opinion.known.classes.index(class_id)]
        seeds = rows[np.argsort(-opinion.sure[rows], kind="stable")][:_SEEDS]
    else:
        seeds = np.array([p.index for p in opinion.picks if not desk.is_closed(int(opinion.numbers[p.index]))])
    left = np.zeros(len(opinion.numbers), dtype=bool)
    left[rows] = True
    found: list[LookAlikes] = []
    for seed in seeds:
        if len(found) == count + skip:
            break
        if not left[seed]:
            continue
        like = left & (opinion.guess == opinion.guess[seed]) if opinion.probs.size else left
        members = desk.thinker.neighbours(int(seed), np.flatnonzero(like), GROUP)
        left[members] = False
        found.append(LookAlikes(_class_of(opinion, int(seed)), tuple(_shown(opinion, int(row)) for row in members)))
    return found[skip:]


def neighbours(desk: Desk, number: int, count: int = 6) -> list[tuple[int, str]]:
    """(number, class id) of the labelled images most like this one.

    Args:
        desk: with answers and features.
        number: of the image.
        count: how many at most.
    """
    opinion, labelled = desk.opinion, desk.labelled()
    row = opinion.rows.get(number)
    if row is None:
        return []
    rows = np.array([opinion.rows[n] for n in labelled if n in opinion.rows and n != number], dtype=np.int64)
    near = [int(opinion.numbers[r]) for r in desk.thinker.neighbours(row, rows, count)]
    return [(n, labelled[n]) for n in near]


def ranking(desk: Desk, number: int) -> list[tuple[str, float]]:
    """Classes by probability, the likeliest first; empty where the model says nothing."""
    opinion = desk.opinion
    row = opinion.rows.get(number)
    if row is None or not opinion.probs.size or row >= len(opinion.probs):
        return []
    order = np.argsort(-opinion.probs[row], kind="stable")
    return [(opinion.known.classes[int(c)], float(opinion.probs[row, c])) for c in order]


def _class_of(opinion: ModelOpinion, row: int) -> str:
    return opinion.known.classes[int(opinion.guess[row])] if opinion.probs.size else ""


def _shown(opinion: ModelOpinion, row: int) -> Shown:
    sure = float(opinion.sure[row]) if opinion.probs.size else 0.0
    return Shown(int(opinion.numbers[row]), _class_of(opinion, row), sure)
