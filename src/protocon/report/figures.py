"""The page's figures: each with its title, what it shows in words, and its numbers in a table."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from protocon.report import charts, collect, drawing
from protocon.report.charts import Line
from protocon.report.collect import Curve
from protocon.report.drawing import BLACK, BLUE, COLOURS, DASHES, GREEN, ORANGE, PURPLE
from protocon.report.record import Record

_TABLE_ROWS = 12
_FEATURES = (
    "Share of images whose 20 nearest neighbours are mostly of their class (no label has any influence on training), "
    "and how widely features point: near 0, all images look the same."
)
_REFINEMENT = " Where the refined label lies above both opinions, refinement pays; it matters most while they disagree."


@dataclass(frozen=True)
class Table:
    """Numbers under a figure."""

    heading: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class DrawnFigure:
    """One figure of the page."""

    title: str
    source: str
    """Data URI."""
    alt: str
    """What a reader who cannot see it should know."""
    caption: str
    table: Table | None = field(default=None)


def percent(value: float) -> str:
    """A share as `98.5 %`."""
    return f"{100 * value:.1f} %"


def curve_table(series: Sequence[Line], *, shares: bool) -> Table:
    """Values of curves at up to a dozen epochs spread over the run, the last one included."""
    epochs = sorted({int(epoch) for line in series for epoch in line.curve.epochs})
    chosen = [epochs[i] for i in np.unique(np.linspace(0, len(epochs) - 1, min(_TABLE_ROWS, len(epochs))).astype(int))]
    values = [
        dict(zip(line.curve.epochs.astype(int).tolist(), line.curve.values.tolist(), strict=True)) for line in series
    ]

    def cell(value: float | None) -> str:
        return "–" if value is None else percent(value) if shares else f"{value:.4g}"

    rows = tuple((str(epoch), *(cell(column.get(epoch)) for column in values)) for epoch in chosen)
    return Table(("epoch", *(line.label for line in series)), rows)


def _summary(series: Sequence[Line], *, shares: bool) -> str:
    ends = [
        f"{line.label} ends at {percent(line.curve.last) if shares else format(line.curve.last, '.3g')}"
        for line in series
    ]
    return f"{len(series[0].curve)} epochs; " + ", ".join(ends)


def share_picture(
    series: Sequence[Line], *, title: str, caption: str, legend: bool | None = None
) -> DrawnFigure | None:
    """Curves of shares; None without any. A legend names them, unless there is but one.

    Args:
        series: curves with their names and colours.
        title: above the picture.
        caption: below it.
        legend: whether to name the curves; None: where there are several.
    """
    if not series:
        return None
    source = charts.lines(series, percent=True, legend=len(series) > 1 if legend is None else legend)
    alt = f"{title}: {_summary(series, shares=True)}"
    return DrawnFigure(title, source, alt, caption, curve_table(series, shares=True))


def _known(found: Iterable[tuple[str, Curve | None, str, str]]) -> list[Line]:
    return [Line(label, curve, colour, dash) for label, curve, colour, dash in found if curve is not None]


def run_curves(record: Record) -> list[DrawnFigure]:
    """Everything that one run recorded epoch by epoch."""
    agreement = collect.curve(record, "agreement")
    disagreement = None if agreement is None else Curve(agreement.epochs, 1 - agreement.values)
    test = _known(
        [
            ("averaged weights", collect.curve(record, "test_accuracy_ema"), BLUE, "-"),
            ("weights themselves", collect.curve(record, "test_accuracy"), ORANGE, "--"),
        ]
    )
    opinions = _known(
        [
            ("refined label right", collect.curve(record, "pseudo_accuracy_refined"), GREEN, "-"),
            ("cluster right", collect.curve(record, "pseudo_accuracy_cluster"), BLUE, "-."),
            ("classifier right", collect.curve(record, "pseudo_accuracy_classifier"), ORANGE, "-"),
        ]
    )
    split = _known([("classifier and cluster disagree", disagreement, BLACK, "--")])
    kept = _known([("retained for learning", collect.curve(record, "retention"), PURPLE, "-")])
    features = _known(
        [
            ("nearest neighbours right", collect.curve(record, "knn_accuracy"), GREEN, "-"),
            ("spread of the features", collect.curve(record, "feature_spread"), BLUE, "--"),
        ]
    )
    pictures = [
        share_picture(features, title="How good the features are", caption=_FEATURES),
        map_picture(record),
        share_picture(test, title="Test accuracy", caption="Share of test images that are labelled right."),
        share_picture(
            opinions + split,
            title="Pseudo-labels: who is right" + (", and how often the opinions differ" if split else ""),
            caption="Accuracy on the unlabelled images, whose classes the data set knows and the run does not."
            + (_REFINEMENT if split else ""),
        )
        if opinions
        else share_picture(
            split,
            title="How often classifier and cluster disagree",
            caption="The truth is not known here, so this says how much the two opinions differ, not who is right.",
        ),
        share_picture(
            kept,
            title="Retention",
            caption="Share of unlabelled images whose pseudo-label was sure enough (confidence ≥ τ) to learn from.",
        ),
        losses([record], ["this run"]),
    ]
    return [picture for picture in pictures if picture is not None]


def map_picture(record: Record) -> DrawnFigure | None:
    """Where images lie by their features; None where there is no map."""
    places = record.feature_map.get("places")
    if not places:
        return None
    classes = [None if name is None else str(name) for name in record.feature_map["classes"]]
    names = sorted({name for name in classes if name is not None})
    known = f"coloured by class ({len(names)})" if names else "whose classes are not known"
    return DrawnFigure(
        "Map of the features",
        drawing.scatter(np.array(places, dtype=float), classes),
        f"Map of {len(places)} images by their features, {known}",
        "t-SNE: images with similar features lie close; distances between far groups mean little."
        + (" Classes that form groups of their own can be learnt from few labels." if names else ""),
    )


def losses(records: list[Record], labels: list[str]) -> DrawnFigure | None:
    """Every loss in a frame of its own, all runs in each."""
    parts, columns = [], []
    for key in collect.loss_keys(records):
        name = collect.LOSSES.get(key, key)
        series = [
            Line(label, curve, *look(number))
            for number, (record, label) in enumerate(zip(records, labels, strict=True))
            if (curve := collect.curve(record, key)) is not None
        ]
        parts.append((name, series))
        columns += [
            Line(name if len(records) == 1 else f"{name.partition(':')[0]}, {line.label}", line.curve, line.colour)
            for line in series
        ]
    if not parts:
        return None
    ends = ", ".join(f"{line.label} {line.curve.last:.3g}" for line in columns)
    return DrawnFigure(
        "Losses",
        charts.panels(parts),
        f"Losses over the epochs; last values: {ends}",
        "Means over an epoch, before they are weighted.",
        curve_table(columns, shares=False) if len(columns) <= 8 else None,
    )


def look(number: int) -> tuple[str, str]:
    """Colour and dashes of the n-th run."""
    return COLOURS[number % len(COLOURS)], DASHES[number // len(COLOURS) % len(DASHES)]


def cluster_range(record: Record) -> DrawnFigure | None:
    """Smallest and largest cluster over the epochs against γ."""
    series = _known(
        [
            ("largest cluster", collect.curve(record, "largest_cluster"), BLUE, "-"),
            ("smallest cluster", collect.curve(record, "smallest_cluster"), ORANGE, "-"),
        ]
    )
    if not series:
        return None
    gamma = record.clusters.get("gamma")
    if gamma is not None:
        epochs = series[0].curve.epochs
        series.append(Line("γ: smallest wanted", Curve(epochs, np.full(len(epochs), float(gamma))), BLACK, ":"))
    title = "Smallest and largest cluster"
    return DrawnFigure(
        title,
        charts.lines(series, percent=False, legend=True),
        f"{title}: {_summary(series, shares=False)}",
        "Images in a cluster at the end of each epoch. The constraint of Eq. 3 keeps clusters from starving.",
        curve_table(series, shares=False),
    )


def class_pictures(record: Record) -> list[DrawnFigure]:
    """Purity and pseudo-label accuracy by class, and the sizes of the clusters."""
    pictures = []
    for key, title, caption in (
        (
            "pseudo_accuracy",
            "Pseudo-label accuracy by class",
            "Share of each class’s unlabelled images whose refined label is right. Grey: no value.",
        ),
        (
            "purity",
            "Cluster purity by class",
            "Mean share of the most frequent true class in a cluster, over the clusters where that class is the most "
            "frequent. Grey: in that epoch no cluster was mostly this class.",
        ),
    ):
        history = collect.class_history(record, key)
        if history is None:
            continue
        ends = [(name, history.values[i, -1]) for i, name in enumerate(history.names)]
        table = Table(
            ("class", f"epoch {int(history.epochs[-1])}"),
            tuple((name, "–" if np.isnan(value) else percent(value)) for name, value in ends),
        )
        some = (
            f" The lowest {len(history.names)} of {history.classes:,} classes."
            if len(history.names) < history.classes
            else ""
        )
        low = next(((name, value) for name, value in ends if not np.isnan(value)), None)
        said = "" if low is None else f"; lowest in the last epoch: {low[0]}, {percent(low[1])}"
        pictures.append(
            DrawnFigure(title, drawing.heatmap(history), f"{title} over the epochs{said}", caption + some, table)
        )
    spread = cluster_range(record)
    if spread is not None:
        pictures.append(spread)
    sizes = collect.cluster_members(record)
    if sizes is not None:
        pictures.append(
            DrawnFigure(
                "Cluster sizes at the end",
                drawing.histogram(sizes),
                f"Histogram of {len(sizes.members)} cluster sizes from {sizes.members.min()} to {sizes.members.max()}; "
                f"{sizes.below} are below γ = {sizes.gamma:g}",
                f"{len(sizes.members):,} clusters; {sizes.below:,} of them are smaller than γ. The constraint is soft: "
                "duals push towards it, a batch at a time.",
                Table(
                    ("smallest", "median", "largest", "below γ"),
                    (
                        (
                            f"{sizes.members.min():,}",
                            f"{np.median(sizes.members):g}",
                            f"{sizes.members.max():,}",
                            f"{sizes.below:,}",
                        ),
                    ),
                ),
            )
        )
    return pictures


def confusion_picture(found: collect.Confusion) -> DrawnFigure:
    """The confusion matrix, called what it is."""
    title = "Confusion matrix of the test set" if found.of_truth else "Classifier’s opinion against the cluster’s"
    caption = (
        "Rows are true classes, columns what the averaged network says; images of the test set."
        if found.of_truth
        else "Not a measure of accuracy: the true classes are not known. Rows are the classifier’s labels of the "
        "unlabelled images, columns the cluster’s; off the diagonal they differ."
    )
    if len(found.names) < found.classes:
        caption += f" The {len(found.names)} of {found.classes:,} classes with the most confusions."
    worst = "none" if not found.pairs else "{} taken for {}, {} images".format(*found.pairs[0])
    return DrawnFigure(
        title,
        charts.matrix(found),
        f"{title}; most frequent confusion: {worst}",
        caption,
        Table((found.rows, found.columns, "images"), tuple((a, b, f"{n:,}") for a, b, n in found.pairs))
        if found.pairs
        else None,
    )


def overlays(records: list[Record], labels: list[str]) -> list[DrawnFigure]:
    """The same curve of several runs in one frame."""
    pictures = []
    for key, title, caption in (
        ("test_accuracy_ema", "Test accuracy", "Averaged weights."),
        ("pseudo_accuracy_refined", "Accuracy of the pseudo-labels", "Refined labels of the unlabelled images."),
        ("pseudo_accuracy_classifier", "Accuracy of the classifier’s opinions", "On unlabelled images."),
        ("agreement", "Agreement of classifier and cluster", "On unlabelled images."),
        ("retention", "Retention", "Share of unlabelled images whose pseudo-label was sure enough to learn from."),
    ):
        series = [
            Line(label, curve, *look(number))
            for number, (record, label) in enumerate(zip(records, labels, strict=True))
            if (curve := collect.curve(record, key)) is not None
        ]
        picture = share_picture(series, title=title, caption=caption, legend=True)
        if picture is not None:
            pictures.append(picture)
    found = losses(records, labels)
    return [*pictures, found] if found is not None else pictures
