"""Claims about the course of training: refinement, convergence, purity, retention."""

from collections.abc import Sequence

from protocon.claims.accuracy import BASELINES, OURS
from protocon.claims.claim import Claim, Curves, Effect, Need, effect
from protocon.claims.claim_outcome import Outcome, Reader, Rows, mean_of
from protocon.claims.field import Field
from protocon.compare.statistics import mean_interval, paired_difference

WITHOUT_C = f"{OURS}+lambda_c=0"
_EARLY = 0.5
"""The share of a run that counts as its start."""
_TEST = "test_accuracy_ema"
_REACHED = 0.8
"""A class has risen when it reaches this purity or accuracy."""


def _ours(field: Field) -> list[Need]:
    return [Need(OURS, field.scarce)]


def _refinement(outcome: Outcome) -> Sequence[Effect]:
    (need,) = _ours(outcome.field)
    refined = outcome.read(need, mean_of("pseudo_accuracy_refined", first=2))
    found = []
    for source in ("classifier", "cluster"):
        other = outcome.read(need, mean_of(f"pseudo_accuracy_{source}", first=2))
        what = f"accuracy of refined − of {source} pseudo-labels, mean over epochs"
        found.append(effect(what, "points", paired_difference(refined, other)))
    fall = outcome.read(need, lambda rows: _disagreement(rows[1 : len(rows) // 3]) - _disagreement(rows[-10:]))
    found.append(effect("disagreement, first third − last ten epochs", "points", mean_interval(list(fall.values()))))
    return found


def _disagreement(rows: Rows) -> float:
    return 100 * (1 - float(sum(row["agreement"] for row in rows)) / len(rows))


def _refinement_curves(outcome: Outcome) -> Sequence[Curves]:
    (need,) = _ours(outcome.field)
    lines = {name: outcome.mean_curve(need, f"pseudo_accuracy_{name}") for name in ("classifier", "cluster", "refined")}
    lines["disagreement"] = [round(100 - value, 4) for value in outcome.mean_curve(need, "agreement")]
    return [Curves("pseudo-labels, %", lines)]


def _race(field: Field) -> list[Need]:
    return [Need(method, field.scarce) for method in (OURS, *BASELINES)]


def _start(outcome: Outcome, needs: Sequence[Need]) -> Sequence[Effect]:
    ours, *others = needs
    reader = mean_of(_TEST, last=_EARLY)
    what = "mean test accuracy of the first half of training, {} − {}"
    return [
        effect(what.format(ours.variant, other.variant), "points", outcome.ahead(ours, other, reader))
        for other in others
    ]


def _test_curves(outcome: Outcome, needs: Sequence[Need]) -> Sequence[Curves]:
    return [Curves("test accuracy, %", {need.variant: outcome.mean_curve(need, _TEST) for need in needs})]


def _with_and_without(field: Field) -> list[Need]:
    return [Need(OURS, field.scarce), Need(WITHOUT_C, field.scarce)]


def _purity(outcome: Outcome) -> Sequence[Effect]:
    (need,) = _ours(outcome.field)
    lags, ranks = [], []
    for rows in outcome.classes(need).values():
        pure, right = _risen(rows, "purity"), _risen(rows, "pseudo_accuracy")
        lags.append(sum(right[name] - pure[name] for name in right) / len(right))
        ranks.append(_correlation([pure[name] for name in right], [right[name] for name in right]))
    what = "epochs from 80 % purity to 80 % pseudo-label accuracy, mean over classes"
    order = "correlation over classes of the two epochs"
    return [effect(what, "epochs", mean_interval(lags)), effect(order, "r", mean_interval(ranks))]


def _risen(rows: Rows, what: str) -> dict[str, int]:
    """The epoch in which each class first reaches the mark; one after the last where it never does."""
    names = {name for row in rows for name in row["pseudo_accuracy"]}
    return {
        name: next((row["epoch"] for row in rows if row[what].get(name, 0.0) >= _REACHED), len(rows))
        for name in sorted(names)
    }


def _correlation(left: Sequence[float], right: Sequence[float]) -> float:
    """Pearson's r; 0 where one side does not vary."""
    a, b = sum(left) / len(left), sum(right) / len(right)
    covariance = sum((x - a) * (y - b) for x, y in zip(left, right, strict=True))
    size = sum((x - a) ** 2 for x in left) * sum((y - b) ** 2 for y in right)
    return covariance / float(size**0.5) if size else 0.0


def _against_debiaspl(field: Field) -> list[Need]:
    return [Need(OURS, field.scarce), Need("debiaspl", field.scarce)]


def _retention(outcome: Outcome) -> Sequence[Effect]:
    ours, theirs = _against_debiaspl(outcome.field)
    kept: Reader = mean_of("retention", first=1)
    right: Reader = mean_of("pseudo_accuracy_refined", first=1)
    return [
        effect("share of images retained, debiaspl − protocon", "points", outcome.ahead(theirs, ours, kept)),
        effect("pseudo-label accuracy, protocon − debiaspl", "points", outcome.ahead(ours, theirs, right)),
    ]


def _retention_curves(outcome: Outcome) -> Sequence[Curves]:
    needs = _against_debiaspl(outcome.field)
    titles = {"pseudo_accuracy_refined": "pseudo-label accuracy, %", "retention": "images retained, %"}
    return [
        Curves(title, {need.variant: outcome.mean_curve(need, key) for need in needs}) for key, title in titles.items()
    ]


CLAIMS = (
    Claim(
        "refinement",
        "Refined pseudo-labels are better than the classifier's and the cluster's, and the two come to agree.",
        "figure 3 (a); section 4.2, 'the refined accuracy curve is almost always above the individual accuracies'",
        "Accuracy of refined minus either pseudo-labels over all epochs from the third; disagreement at the start "
        "minus at the end.",
        _ours,
        _refinement,
        _refinement_curves,
    ),
    Claim(
        "convergence",
        "ProtoCon converges faster than the baselines.",
        "figure 3 (b, c); section 4.2, 'a significant speed up of our model's convergence'",
        "Mean test accuracy over the first half of the epochs, minus each baseline's.",
        _race,
        lambda outcome: _start(outcome, _race(outcome.field)),
        lambda outcome: _test_curves(outcome, _race(outcome.field)),
    ),
    Claim(
        "start",
        "The self-supervised loss speeds up the start.",
        "figure 3 (d); section 4.2, 'with and without the self-supervised loss'",
        "Mean test accuracy over the first half of the epochs, with L_c minus without.",
        _with_and_without,
        lambda outcome: _start(outcome, _with_and_without(outcome.field)),
        lambda outcome: _test_curves(outcome, _with_and_without(outcome.field)),
    ),
    Claim(
        "purity",
        "Clusters of a class become pure before its pseudo-labels become right, the easy classes first.",
        "appendix B, 'Clustering purity vs pseudo-label accuracy', and its figure",
        "Class by class, the epoch of 80 % accuracy minus that of 80 % purity; their correlation over classes.",
        _ours,
        _purity,
    ),
    Claim(
        "retention",
        "ProtoCon retains fewer images than DebiasPL, at a higher pseudo-label accuracy.",
        "appendix B, 'Pseudo-label Retention Ratio', and its figure",
        "Share of images above the threshold and accuracy of pseudo-labels, means over all epochs but the first.",
        _against_debiaspl,
        _retention,
        _retention_curves,
    ),
)
