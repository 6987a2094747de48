"""Claims about final accuracy against other methods: the tables, their spread, and the moderate-label regime."""

from collections.abc import Sequence

from protocon.claims.claim import Claim, Effect, Need, effect
from protocon.claims.claim_outcome import Outcome
from protocon.claims.field import Field
from protocon.compare.statistics import spread_ratio

OURS = "protocon"
BASELINES = ("fixmatch", "fixmatch-da", "comatch", "simmatch", "debiaspl")
"""The paper's Table 1."""
MODERATE = 25
"""Labels per class of the moderate-label regime."""


def _table(field: Field) -> list[Need]:
    return [Need(method, labels) for labels in field.labels for method in (OURS, *BASELINES)]


def _ahead(outcome: Outcome) -> Sequence[Effect]:
    return [
        effect(
            f"{OURS} − {other}, {labels} per class", "points", outcome.ahead(Need(OURS, labels), Need(other, labels))
        )
        for labels in outcome.field.labels
        for other in BASELINES
    ]


def _steadier(outcome: Outcome) -> Sequence[Effect]:
    found = []
    for labels in outcome.field.labels:
        ours = list(outcome.accuracy(Need(OURS, labels)).values())
        for other in BASELINES:
            theirs = list(outcome.accuracy(Need(other, labels)).values())
            what = f"standard deviation of {other} ÷ {OURS}, {labels} per class"
            found.append(effect(what, "×", spread_ratio(ours, theirs), claimed=1.0))
    return found


def _few_neighbours(field: Field) -> str:
    return f"{OURS}+neighbours={max(2, round(field.neighbours / 10))}"


def _moderate_needs(field: Field) -> list[Need]:
    return [Need(method, MODERATE) for method in (_few_neighbours(field), OURS, "fixmatch", "debiaspl")]


def _moderate(outcome: Outcome) -> Sequence[Effect]:
    few, *others = _moderate_needs(outcome.field)
    return [effect(f"{few.short} − {other.short}", "points", outcome.ahead(few, other)) for other in others]


CLAIMS = (
    Claim(
        "ahead",
        "ProtoCon is ahead of each baseline with 2, 4 and 8 labels per class.",
        "Table 1; section 4.2, 'ProtoCon outperforms baselines in almost all the cases'",
        "Accuracy minus that of each baseline of Table 1, paired by the draw of labels.",
        _table,
        _ahead,
    ),
    Claim(
        "steady",
        "ProtoCon varies less over draws of the labels.",
        "section 4.2, 'It also exhibits less variance across the different splits'",
        "The baseline's standard deviation over draws, divided by ProtoCon's.",
        _table,
        _steadier,
    ),
    Claim(
        "moderate",
        "With 25 labels per class ProtoCon is still ahead, and a tenth of the neighbours is better.",
        "appendix, moderate-label regime and its table",
        "ProtoCon with n / 10 minus FixMatch, minus DebiasPL, and minus ProtoCon with n.",
        _moderate_needs,
        _moderate,
    ),
)
