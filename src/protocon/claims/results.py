"""A tested claim as a JSON file: effects, verdict, curves, and everything needed to test it again."""

import json
import subprocess
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import protocon
from protocon.base.atomic import write_bytes
from protocon.claims.claim import Claim, Effect, verdict_of
from protocon.claims.claim_outcome import Outcome
from protocon.claims.table import CLAIMS
from protocon.errors import RunError

_DIGITS = 6


def result_of(claim: Claim, outcome: Outcome, *, command: str) -> dict[str, Any]:
    """What the runs say of a claim.

    Args:
        claim: which.
        outcome: of its runs.
        command: that makes the same again.
    """
    effects = list(claim.effects(outcome))
    field = outcome.field
    own = {"settings": list(field.settings), "epochs": field.epochs} if outcome.folders else {}
    needs = [need for need in claim.needs(field) if need in outcome.accuracies]
    return {
        "claim": claim.id,
        "data": field.name,
        "about": field.about,
        **own,
        "seeds": field.seeds if needs else 0,
        "command": command,
        "version": protocon.__version__,
        "commit": commit(),
        "verdict": verdict_of(effects),
        "effects": [_rounded(asdict(one) | {"verdict": one.verdict}) for one in effects],
        "curves": [asdict(curves) for curves in (claim.curves(outcome) if claim.curves is not None else ())],
        "runs": [
            {"variant": need.variant, "labels": need.labels, "condition": need.condition}
            | {"accuracy": {str(seed): round(value, 4) for seed, value in sorted(outcome.accuracy(need).items())}}
            for need in needs
        ],
    }


def _rounded(values: dict[str, Any]) -> dict[str, Any]:
    return {key: round(value, _DIGITS) if isinstance(value, float) else value for key, value in values.items()}


def effects_of(result: dict[str, Any]) -> list[Effect]:
    """The effects of a stored result."""
    return [Effect(**{key: value for key, value in one.items() if key != "verdict"}) for one in result["effects"]]


def commit() -> str | None:
    """The commit of the code, where it is a git checkout."""
    here = Path(__file__).parent
    try:
        found = subprocess.run(
            ["git", "rev-parse", "--short=12", "HEAD"], cwd=here, capture_output=True, text=True, check=True, timeout=10
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return found.stdout.strip() or None


def save(result: dict[str, Any], folder: Path) -> Path:
    """Write a result to its place in a folder, whole or not at all."""
    file = folder / f"{result['claim']}-{result['data']}.json"
    folder.mkdir(parents=True, exist_ok=True)
    write_bytes(file, (json.dumps(result, indent=1, ensure_ascii=False) + "\n").encode())
    return file


def load(folder: Path) -> list[dict[str, Any]]:
    """All results of a folder, claim by claim."""
    order: Sequence[str] = list(CLAIMS)
    found = []
    for file in sorted(folder.glob("*.json")):
        try:
            result = json.loads(file.read_text(encoding="utf-8"))
            found.append((order.index(result["claim"]), result["data"], result))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise RunError(f"{file} is not the result of a claim: {error!r}") from error
    return [result for _, _, result in sorted(found, key=lambda item: item[:2])]
