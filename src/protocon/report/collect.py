"""From a run's files to the numbers of its page, each as it can be checked by hand."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from protocon.errors import ProtoConError
from protocon.report.intervals import wilson_interval
from protocon.report.label_table import NONE, RunLabels
from protocon.report.record import Record
from protocon.settings.config import validate

LAST_EPOCHS = 10
"""An accuracy is the mean over this many last epochs, as in the run's result."""
SHOWN_CLASSES = 20
"""More classes than this do not fit into a figure: the ones with the most mistakes are shown."""
CURVE_POINTS = 300
"""Longer curves are averaged over neighbouring epochs."""


@dataclass(frozen=True)
class Curve:
    """One number over the epochs."""

    epochs: np.ndarray
    """From 1."""
    values: np.ndarray

    def __len__(self) -> int:
        return len(self.epochs)

    @property
    def last(self) -> float:
        """The newest value."""
        return float(self.values[-1])

    def thinned(self, points: int = CURVE_POINTS) -> "Curve":
        """At most so many points, each the mean over neighbouring epochs."""
        if len(self) <= points:
            return self
        pieces = np.array_split(np.arange(len(self)), points)
        return Curve(
            np.array([self.epochs[piece].mean() for piece in pieces]),
            np.array([self.values[piece].mean() for piece in pieces]),
        )


def curve(record: Record, key: str) -> Curve | None:
    """A column of the metrics, in the epochs that have it; None if none has."""
    rows = [(row["epoch"] + 1, row[key]) for row in record.metrics if isinstance(row.get(key), int | float)]
    return Curve(*(np.array(column, dtype=float) for column in zip(*rows, strict=True))) if rows else None


@dataclass(frozen=True)
class Tested:
    """Accuracy of the averaged network on the test set."""

    mean: float
    """Over the last epochs."""
    epochs: int
    """How many epochs the mean is of."""
    images: int | None
    """Images of the test set with a known class; None where that is not on record."""
    interval: tuple[float, float] | None
    """Wilson's 95 % interval; None where the number of images is not known."""


def tested(record: Record) -> Tested | None:
    """The run's result, or of an unfinished run the mean over its newest epochs; None without a test set."""
    found = curve(record, "test_accuracy_ema")
    if found is None:
        return None
    recent = found.values[found.epochs > len(record.metrics) - LAST_EPOCHS]
    recent = recent if len(recent) else found.values[-1:]
    mean = float(recent.mean())
    images = record.test_images
    return Tested(mean, len(recent), images, wilson_interval(mean, images) if images else None)


@dataclass(frozen=True)
class Confusion:
    """How often one opinion's class (row) meets another's (column)."""

    rows: str
    """What the rows are: `true class`, or `classifier's opinion`."""
    columns: str
    classes: int
    """Classes in all; `names` may be fewer."""
    names: tuple[str, ...]
    """Of the classes that are shown."""
    counts: np.ndarray
    """Images, int64 (shown, shown)."""
    pairs: tuple[tuple[str, str, int], ...]
    """Row's class, column's class, images: the most frequent confusions of all classes, most frequent first."""
    of_truth: bool
    """Whether the rows are true classes."""


def confusion(record: Record, table: RunLabels | None) -> Confusion | None:
    """Of the test set; without one, of the classifier's and the cluster's opinions on unlabelled images."""
    if record.evaluation.get("confusion"):
        cells = np.array(record.evaluation["confusion"], dtype=np.int64).reshape(-1, 3)
        names = tuple(map(str, record.evaluation["class_names"]))
        return _confusion(cells, names, ("true class", "predicted class"), of_truth=True)
    if table is None or not table.has("cluster"):
        return None
    use = table.unlabelled & (table.labels["cluster"] != NONE)
    size = len(table.class_names)
    pairs, counts = np.unique(
        table.labels["classifier"][use].astype(np.int64) * size + table.labels["cluster"][use], return_counts=True
    )
    cells = np.stack([pairs // size, pairs % size, counts], axis=1)
    return _confusion(cells, table.class_names, ("classifier’s opinion", "cluster’s opinion"), of_truth=False)


def _confusion(cells: np.ndarray, names: tuple[str, ...], titles: tuple[str, str], *, of_truth: bool) -> Confusion:
    wrong = cells[cells[:, 0] != cells[:, 1]]
    wrong = wrong[np.lexsort((wrong[:, 1], wrong[:, 0], -wrong[:, 2]))]
    errors = np.bincount(wrong[:, :2].ravel(), weights=np.repeat(wrong[:, 2], 2), minlength=len(names))
    shown = np.sort(np.argsort(-errors, kind="stable")[:SHOWN_CLASSES])
    place = np.full(len(names), NONE)
    place[shown] = np.arange(len(shown))
    inside = cells[(place[cells[:, 0]] != NONE) & (place[cells[:, 1]] != NONE)]
    counts = np.zeros((len(shown), len(shown)), dtype=np.int64)
    counts[place[inside[:, 0]], place[inside[:, 1]]] = inside[:, 2]
    return Confusion(
        rows=titles[0],
        columns=titles[1],
        classes=len(names),
        names=tuple(names[int(number)] for number in shown),
        counts=counts,
        pairs=tuple((names[int(a)], names[int(b)], int(n)) for a, b, n in wrong[:10]),
        of_truth=of_truth,
    )


@dataclass(frozen=True)
class ClassHistory:
    """A share of every class over the epochs, the class with the lowest newest value first."""

    classes: int
    """Classes in all; `names` may be fewer."""
    names: tuple[str, ...]
    epochs: np.ndarray
    """From 1."""
    values: np.ndarray
    """(classes shown, epochs), NaN where there is none."""


def class_history(record: Record, key: str) -> ClassHistory | None:
    """`pseudo_accuracy` or `purity` by class; the lowest ones of many classes; None where the truth is unknown."""
    rows = [row for row in record.classes if row.get(key)]
    if not rows:
        return None
    names = sorted({name for row in rows for name in row[key]})
    values = np.array([[row[key].get(name, np.nan) for row in rows] for name in names], dtype=float)
    epochs = np.array([row["epoch"] + 1 for row in rows], dtype=float)
    if len(epochs) > CURVE_POINTS:
        pieces = np.array_split(np.arange(len(epochs)), CURVE_POINTS)
        # The newest of each piece rather than a mean: NaN needs no care, and the last column stays the last epoch.
        keep = np.array([piece[-1] for piece in pieces])
        epochs, values = epochs[keep], values[:, keep]
    order = np.argsort(values[:, -1], kind="stable")[:SHOWN_CLASSES]  # NaN comes last
    return ClassHistory(len(names), tuple(names[int(i)] for i in order), epochs, values[order])


@dataclass(frozen=True)
class ClusterMembers:
    """Members of the clusters at the end, all heads together."""

    members: np.ndarray
    gamma: float
    """γ: what a cluster should have at least."""
    neighbours: float
    """n: what a cluster has on average."""

    @property
    def below(self) -> int:
        """Clusters that are smaller than γ."""
        return int((self.members < self.gamma).sum())


def cluster_members(record: Record) -> ClusterMembers | None:
    """From clusters.json; None for methods without clusters and for unfinished runs."""
    heads = record.clusters.get("heads")
    if not heads:
        return None
    members = np.concatenate([np.array(head["members"], dtype=np.int64) for head in heads])
    return ClusterMembers(members, float(record.clusters["gamma"]), float(record.clusters["neighbours"]))


LOSSES = {
    "loss_x": "Lx: labelled images",
    "loss_u": "Lu: reliable pseudo-labels",
    "loss_p": "Lp: class prototypes",
    "loss_c": "Lc: consistency of views",
    "loss_ctr": "Lctr: graphs of the views",
    "loss_in": "Lin: labelled instances",
}
"""What losses are called; any other `loss_…` of the metrics goes by its own name."""


def loss_keys(records: list[Record]) -> list[str]:
    """Losses that any of the runs has, the known ones first."""
    found = {key for record in records for row in record.metrics[-1:] for key in row if key.startswith("loss")}
    return [key for key in LOSSES if key in found] + sorted(found - set(LOSSES))


def settings_of(record: Record) -> list[tuple[str, str, str]]:
    """Setting, value, and where it comes from: `auto` with its reason, `asked for`, or empty for a default."""
    usual = _defaults(record.method)
    rows = []
    for section, content in record.config.items():
        if not isinstance(content, dict):
            rows.append((section, _text(content), ""))
            continue
        asked, default = record.asked.get(section), usual.get(section, {})
        for key, value in content.items():
            wanted = asked.get(key) if isinstance(asked, dict) else None
            # Some are settled by the method from the data's size; others (the device) are left to the machine.
            became, _, reason = record.reasons.get(f"{section}.{key}", "").partition(" (")
            value = became if value == "auto" and became else value
            if wanted == "auto":
                origin = f"auto: {reason.removesuffix(')')}" if reason else "" if value == "auto" else "auto"
            else:
                origin = "" if wanted == default.get(key) else "asked for"
            rows.append((f"{section}.{key}", _text(value), origin))
    return rows


def _defaults(method: str) -> dict[str, dict[str, Any]]:
    """Every section's defaults; none where another version's method is not known here."""
    try:
        sections = validate({"method_name": method}).model_dump(mode="json")
    except ProtoConError:
        return {}
    return {name: content for name, content in sections.items() if isinstance(content, dict)}


def _text(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:g}" if isinstance(value, float) else str(value)
