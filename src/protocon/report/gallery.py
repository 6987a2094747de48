"""Which images the page shows: the most prototypical, those where one opinion knew better, those to look at."""

from dataclasses import dataclass

import numpy as np

from protocon.report.label_table import NONE, RunLabels

CLASSES = 20
PER_CLASS = 8
BETTER = 16
REVIEW = 1000
"""More images to look at than this are in labels.csv alone: nobody looks through a page of them."""
FIRST = 60
"""Of the images to look at, so many have pictures before any other gallery has."""


@dataclass(frozen=True)
class Strip:
    """A row of images with a title."""

    title: str
    rows: np.ndarray
    """Rows of labels.csv, best first."""


@dataclass(frozen=True)
class Gallery:
    """Several strips with what they show in words."""

    title: str
    note: str
    strips: tuple[Strip, ...]
    facts: tuple[str, ...] = ()
    """What is said below each image: names of columns of labels."""


def prototypical(table: RunLabels) -> Gallery | None:
    """The images nearest to their class's prototype; for methods without prototypes the surest ones."""
    near = table.has("prototype")
    score = table.scores["prototype_score" if near else "refined_confidence"]
    refined = table.labels["refined"]
    use = table.unlabelled & ~np.isnan(score)
    if near:
        use &= table.labels["prototype"] == refined
    if not use.any():
        return None
    shown = classes_to_show(table)
    order = np.argsort(-score, kind="stable")
    order = order[use[order]]
    strips = []
    for number in shown:
        rows = order[refined[order] == number][:PER_CLASS]
        if len(rows):
            strips.append(Strip(table.class_names[int(number)], rows))
    few = f" Shown are the {len(shown)} classes with the most images to look at." if len(shown) < _size(table) else ""
    if near:
        return Gallery(
            "The most typical images of each class",
            "Unlabelled images that are nearest to the prototype of their class (the number is the cosine)." + few,
            tuple(strips),
            ("prototype_score",),
        )
    return Gallery(
        "The surest images of each class",
        "Unlabelled images with the highest confidence: this method has no prototypes." + few,
        tuple(strips),
        ("refined_confidence",),
    )


def _size(table: RunLabels) -> int:
    return len(table.class_names)


def classes_to_show(table: RunLabels) -> np.ndarray:
    """All classes, or of many those with the most images to look at, in their order."""
    if len(table.class_names) <= CLASSES:
        return np.arange(len(table.class_names))
    waiting = np.bincount(table.labels["refined"][table.rank > 0], minlength=len(table.class_names))
    return np.sort(np.argsort(-waiting, kind="stable")[:CLASSES])


def knew_better(table: RunLabels) -> Gallery | None:
    """Where one of classifier and cluster is right and the other wrong; without truth, where they disagree."""
    if not table.has("cluster"):
        return None
    classifier, cluster, truth = (table.labels[name] for name in ("classifier", "cluster", "truth"))
    apart = table.unlabelled & (cluster != NONE) & (classifier != cluster)
    if table.has("truth"):
        sides = (
            ("the classifier was right, the cluster wrong", apart & (classifier == truth), "classifier_confidence"),
            ("the cluster was right, the classifier wrong", apart & (cluster == truth), "cluster_confidence"),
        )
        strips = [
            Strip(f"{n:,} images: {what}", rows) for what, use, key in sides for n, rows in [_top(table, use, key)]
        ]
        return Gallery(
            "Where one opinion knew better",
            "Unlabelled images on which classifier and cluster disagree and one of them is right, the surest first. "
            "The truth is known here because the data set has it; the run did not see it.",
            tuple(strips),
            ("classifier", "cluster", "truth"),
        )
    count, rows = _top(table, apart, "classifier_confidence")
    return Gallery(
        "Where classifier and cluster disagree",
        "Who is right is not known: these images have no label. The ones the classifier is surest of come first.",
        (Strip(f"{count:,} images: the two opinions differ", rows),),
        ("classifier", "cluster"),
    )


def _top(table: RunLabels, use: np.ndarray, key: str) -> tuple[int, np.ndarray]:
    rows = np.flatnonzero(use)
    order = np.argsort(-table.scores[key][rows], kind="stable")
    return len(rows), rows[order][:BETTER]


def to_correct(table: RunLabels) -> np.ndarray:
    """Rows of given labels that look wrong, the surest first."""
    return _ranked(table, ~table.unlabelled)


def to_review(table: RunLabels) -> np.ndarray:
    """Rows of the unlabelled images most worth a look, in the order of `review_rank`."""
    return _ranked(table, table.unlabelled)[:REVIEW]


def _ranked(table: RunLabels, use: np.ndarray) -> np.ndarray:
    waiting = np.flatnonzero((table.rank > 0) & use)
    return waiting[np.argsort(table.rank[waiting])]


def reason(table: RunLabels, row: int) -> str:
    """Why an image is in the list to look at."""
    if row in table.why:
        return table.why[row]

    def name(column: str) -> str:
        return table.class_names[int(table.labels[column][row])]

    if table.labels["given"][row] != NONE:
        return f"labelled {name('given')}, but looks like {name('looks_like')}"
    refined = table.labels["refined"][row]
    against = [
        f"{who} says {name(column)}"
        for column, who in (("classifier", "classifier"), ("cluster", "cluster"), ("prototype", "nearest prototype"))
        if table.labels[column][row] not in (NONE, refined)
    ]
    return "; ".join(against) or f"only {100 * float(table.scores['refined_confidence'][row]):.0f} % sure"
