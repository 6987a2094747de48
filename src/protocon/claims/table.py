"""CLAIMS: every claim by its name, in the paper's order."""

from protocon.claims import ablation, accuracy, clustering, dynamics, robustness
from protocon.claims.claim import Claim
from protocon.errors import ConfigError, unknown_name

_ORDER = (
    "ahead", "steady", "refinement", "convergence", "start", "ablation", "history", "discrimination", "constraint",
    "updates", "purity", "retention", "memory", "robust", "heads", "moderate",
)  # fmt: skip
_ALL = {claim.id: claim for family in (accuracy, dynamics, ablation, clustering, robustness) for claim in family.CLAIMS}
CLAIMS: dict[str, Claim] = {name: _ALL[name] for name in _ORDER}
"""Claims by name. `protocon claims` numbers them from 1."""


def chosen(names: list[str]) -> list[Claim]:
    """Claims by name or number; `all` for all of them."""
    if "all" in names:
        return list(CLAIMS.values())
    by_number = {str(number): name for number, name in enumerate(CLAIMS, 1)}
    wanted = [by_number.get(name, name) for name in names]
    for name in wanted:
        if name not in CLAIMS:
            raise ConfigError(unknown_name("claim", name, [*CLAIMS, "all"]))
    return [CLAIMS[name] for name in dict.fromkeys(wanted)]
