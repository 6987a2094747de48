"""What a claim is: runs that it needs, effects that follow from them, and the verdict that follows from the effects."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from protocon.compare.statistics import Difference

if TYPE_CHECKING:
    from protocon.claims.claim_outcome import Outcome
    from protocon.claims.field import Field

Verdict = Literal["supported", "not supported", "undecided"]


@dataclass(frozen=True)
class Need:
    """Runs that a claim needs, one for each seed."""

    variant: str
    """A method, or `METHOD+key=value`."""
    labels: int
    """Labels per class."""
    condition: str = "plain"
    """What was done to the data, a name of CONDITIONS."""

    @property
    def short(self) -> str:
        """For tables and figures."""
        where = "" if self.condition == "plain" else f", {self.condition}"
        return f"{self.variant} ({self.labels} per class{where})"


@dataclass(frozen=True)
class Effect:
    """A number that the claim is about, with its interval, and where the claim says that it lies."""

    what: str
    unit: str
    n: int
    """Seeds that it comes from; 0 for a number without chance in it."""
    mean: float | None
    low: float | None
    """None with fewer than two seeds."""
    high: float | None
    claimed: float = 0.0
    """The claim: above this; or, with `within`, between minus this and this."""
    within: bool = False

    @property
    def verdict(self) -> Verdict:
        """Supported if the whole interval lies where the claim says, not supported if none of it does."""
        low, high = (self.mean, self.mean) if self.n == 0 else (self.low, self.high)
        if low is None or high is None:
            return "undecided"
        if self.within:
            inside, outside = -self.claimed <= low and high <= self.claimed, high < -self.claimed or low > self.claimed
        else:
            inside, outside = low > self.claimed, high <= self.claimed
        return "supported" if inside else "not supported" if outside else "undecided"


def effect(what: str, unit: str, found: Difference, *, claimed: float = 0.0, within: bool = False) -> Effect:
    """An effect from a mean with its interval.

    Args:
        what: is measured, in words.
        unit: of the number.
        found: mean and interval.
        claimed: where the claim begins.
        within: whether the claim is that it lies between minus `claimed` and `claimed`.
    """
    return Effect(what, unit, found.n, found.mean, found.low, found.high, claimed, within)


def verdict_of(effects: Sequence[Effect]) -> Verdict:
    """A claim is supported if all its effects are, and not supported as soon as one of them is not."""
    found = {one.verdict for one in effects}
    if "not supported" in found:
        return "not supported"
    return "supported" if found == {"supported"} else "undecided"


@dataclass(frozen=True)
class Curves:
    """Lines of a figure: means over seeds, epoch by epoch."""

    title: str
    lines: dict[str, list[float]]


@dataclass(frozen=True)
class Claim:
    """One statement of the paper that runs can test."""

    id: str
    says: str
    """The claim in our words."""
    place: str
    """Where the paper makes it."""
    test: str
    """What is measured, and what would count against it."""
    needs: "Callable[[Field], Sequence[Need]]"
    effects: "Callable[[Outcome], Sequence[Effect]]"
    curves: "Callable[[Outcome], Sequence[Curves]] | None" = None
