"""When to stop: what more labels would still change."""

from typing import Any

from protocon.labeller.audit_stream import ENOUGH
from protocon.labeller.opinion import ModelOpinion

_COVERAGE = 0.5
_AGREEMENT = 0.97
_WIDTH = 0.2
"""Of the audit's interval: ten points to either side."""
_MIN_KNOWN = 2


def advice(opinion: ModelOpinion, *, finished: bool) -> dict[str, Any]:
    """A verdict, and the signs that it rests on: each met or not, with what it says.

    Args:
        opinion: of the latest round.
        finished: all images have features.
    """
    audit, known = opinion.audit, opinion.known
    low, high = audit.interval
    agreement = opinion.agreement
    labelled = int((known.labels >= 0).sum())
    signs = [
        _sign("images seen", finished, "all" if finished else f"{len(opinion.numbers):,} so far"),
        _sign(
            "coverage", opinion.coverage >= _COVERAGE, f"{100 * opinion.coverage:.0f} % (enough: {100 * _COVERAGE:.0f})"
        ),
        _sign(
            "agreement between rounds",
            agreement is not None and agreement >= _AGREEMENT,
            "not known yet" if agreement is None else f"{100 * agreement:.1f} % (enough: {100 * _AGREEMENT:.0f})",
        ),
        _sign(
            "random audit",
            audit.asked >= ENOUGH and high - low <= _WIDTH,
            f"{audit.asked} image{'' if audit.asked == 1 else 's'} (at least {ENOUGH}), "
            f"interval of {100 * (high - low):.0f} points (enough: {100 * _WIDTH:.0f})",
        ),
    ]
    met = [sign["met"] for sign in signs]
    if labelled < _MIN_KNOWN or len(known.classes) < _MIN_KNOWN:
        verdict, level = "Keep going: two classes or more need a label.", "go"
    elif all(met):
        verdict, level = "You can stop: more labels would change little. Make the full run.", "stop"
    elif met[0] and met[1] and met[2]:
        verdict, level = "Predictions have settled. A few more random checks say how good they are.", "soon"
    else:
        verdict, level = "Keep going: each answer still changes predictions.", "go"
    return {"verdict": verdict, "level": level, "signs": signs}


def _sign(name: str, met: bool, text: str) -> dict[str, Any]:
    return {"name": name, "met": bool(met), "text": text}
