"""Claims about ProtoCon's parts: losses, neighbours, mixing ratio, history, heads, the self-supervised loss."""

from collections.abc import Sequence
from functools import partial

from protocon.claims.accuracy import OURS
from protocon.claims.claim import Claim, Effect, Need, effect
from protocon.claims.claim_outcome import Outcome
from protocon.claims.field import Field

_DISCRIMINATION = f"{OURS}+self_supervision=instance-discrimination"
_TWO_HEADS = f"{OURS}+heads=2"
_SAME = 1.0
"""Points within which one head is as good as two."""


def _parts(field: Field) -> list[Need]:
    losses = ("lambda_c=0", "lambda_p=0", "lambda_c=0+lambda_p=0")
    sizes = [f"neighbours={max(2, round(factor * field.neighbours))}" for factor in (1 / 5, 2, 4)]
    ratios = ("alpha=0.5", "alpha=0.7", "alpha=0.9")
    return _variants(field, (*losses, *sizes, *ratios))


def _variants(field: Field, changes: Sequence[str]) -> list[Need]:
    return [Need(OURS, field.scarce), *(Need(f"{OURS}+{change}", field.scarce) for change in changes)]


def _worse(outcome: Outcome, needs: Sequence[Need]) -> list[Effect]:
    """How far the method is ahead of its variants."""
    ours, *others = needs
    return [effect(f"{OURS} − {other.variant}", "points", outcome.ahead(ours, other)) for other in others]


_history = partial(_variants, changes=("history_fraction=0.5", "history_fraction=0.25"))


def _collapse_needs(field: Field) -> list[Need]:
    return [Need(method, field.scarce) for method in (OURS, _DISCRIMINATION, "supervised")]


def _collapse(outcome: Outcome) -> Sequence[Effect]:
    ours, other, supervised = _collapse_needs(outcome.field)
    what = "labels alone − instance discrimination: a collapse is worse than no unlabelled image at all"
    return [
        effect("consistency − instance discrimination", "points", outcome.ahead(ours, other)),
        effect(what, "points", outcome.ahead(supervised, other)),
    ]


def _heads_needs(field: Field) -> list[Need]:
    return [Need(_TWO_HEADS, field.scarce), Need(OURS, field.scarce)]


def _heads(outcome: Outcome) -> Sequence[Effect]:
    two, one = _heads_needs(outcome.field)
    found = outcome.ahead(two, one)
    return [effect("two heads − one head", "points", found, claimed=_SAME, within=True)]


CLAIMS = (
    Claim(
        "ablation",
        "Each loss, n and α are best as they are.",
        "Table 5 (ablation), CIFAR-10 with 80 labels",
        "Accuracy minus that without L_c, L_p or both; with n / 5, 2 n, 4 n; with α = 0.5, 0.7, 0.9.",
        _parts,
        lambda outcome: _worse(outcome, _parts(outcome.field)),
    ),
    Claim(
        "history",
        "The labels of all members make better cluster labels than those of a half or a quarter.",
        "section 4.2, 'about 1-2% (4-5%) average drop in performance, if we use half (quarter)'",
        "Accuracy with the whole history minus that with a random half, and a quarter, of each cluster.",
        _history,
        lambda outcome: _worse(outcome, _history(outcome.field)),
    ),
    Claim(
        "discrimination",
        "With instance discrimination in place of L_c training collapses.",
        "section 4.2, 'This version completely collapsed and did not converge at all'",
        "Accuracy minus that with instance discrimination, which must also be below learning from the labels alone.",
        _collapse_needs,
        _collapse,
    ),
    Claim(
        "heads",
        "On small data one clustering head is sufficient.",
        "section 3.1, 'for smaller datasets, a single head is sufficient'",
        "Accuracy of two heads minus one, which must lie within one point. (Two heads are for ImageNet.)",
        _heads_needs,
        _heads,
    ),
)
