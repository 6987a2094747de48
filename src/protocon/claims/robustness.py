"""The claim of the DomainNet table: noise in the labels and rare classes hurt ProtoCon less."""

from collections.abc import Sequence

from protocon.claims.accuracy import OURS
from protocon.claims.claim import Claim, Effect, Need, effect
from protocon.claims.claim_outcome import Outcome
from protocon.claims.conditions import LONG_TAIL, NOISY, PLAIN
from protocon.claims.field import Field
from protocon.compare.statistics import paired_difference

_OTHERS = ("fixmatch", "comatch", "debiaspl")
"""The baselines of the paper's DomainNet table."""
_LABELS = 4


def _needs(_field: Field) -> list[Need]:
    return [Need(method, _LABELS, condition) for condition in (PLAIN, NOISY, LONG_TAIL) for method in (OURS, *_OTHERS)]


def _robust(outcome: Outcome) -> Sequence[Effect]:
    found = []
    for condition in (NOISY, LONG_TAIL):
        ours = _loss(outcome, OURS, condition)
        for other in _OTHERS:
            what = f"points that {other} loses − points that {OURS} loses, {condition}"
            found.append(effect(what, "points", paired_difference(_loss(outcome, other, condition), ours)))
    return found


def _loss(outcome: Outcome, method: str, condition: str) -> dict[int, float]:
    """Points of accuracy that the condition costs a method, by seed."""
    before = outcome.accuracy(Need(method, _LABELS))
    after = outcome.accuracy(Need(method, _LABELS, condition))
    return {seed: before[seed] - after[seed] for seed in before.keys() & after.keys()}


CLAIMS = (
    Claim(
        "robust",
        "Noisy labels and imbalanced classes hurt ProtoCon less than the baselines.",
        "section 4.2, 'our method is also more robust to noisy labels' (DomainNet, Table 2)",
        "4 labels per class. 30 % of the training labels replaced by another class; or a long tail of 10 to 1. "
        "Points that each baseline of Table 2 loses minus those that ProtoCon loses.",
        _needs,
        _robust,
    ),
)
