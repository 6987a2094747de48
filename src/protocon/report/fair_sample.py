"""Which held-out labels are a fair sample: not those that answer for a list to look at, which are hard by choice."""

from dataclasses import dataclass
from typing import Any

from protocon.report.intervals import wilson_interval

_MIN_FAIR = 5
"""Where fewer labels are left, all of them count."""


@dataclass(frozen=True)
class FairSample:
    """Held-out labels, counted apart."""

    found: int
    """Of the labels that count, those that were predicted as given."""
    total: int
    """Labels that count."""
    listed_found: int
    """The same of those from a list to look at."""
    listed: int
    """Labels from a list to look at, where they do not count; else 0."""

    @property
    def share(self) -> float:
        """Of the labels that count, how many were predicted as given."""
        return self.found / self.total

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's 95 % interval of `share`."""
        return wilson_interval(self.share, self.total)

    @property
    def aside(self) -> str:
        """A word on the labels that do not count; empty if all do."""
        if not self.listed:
            return ""
        return (
            f"{self.listed:,} labels from a list to look at, which are harder than others, are not counted: "
            f"{self.listed_found:,} of them agree"
        )


def held_out_words(checked: dict[str, Any], labelled: int | None, fair: FairSample) -> str:
    """Whose labels were held out; one that is alone in its class cannot be.

    Args:
        checked: what result.json says of held-out labels.
        labelled: labels that were given; None where that is not known.
        fair: which of them count.
    """
    alone = 0 if labelled is None else labelled - int(checked["held_out"])
    if alone <= 0:
        return f"Each of your {fair.total:,} labels was held out once and predicted from the others"
    rest = "1 is" if alone == 1 else f"{alone:,} are"
    return (
        f"{fair.total:,} of your {labelled:,} labels {'was' if fair.total == 1 else 'were'} held out once and "
        f"predicted from the others ({rest} alone in {'its class' if alone == 1 else 'their classes'})"
    )


def fair_sample(checked: dict[str, Any]) -> FairSample:
    """What result.json says of held-out labels (`cross_check`); older runs know nothing of lists.

    Args:
        checked: with `held_out` above 0.
    """
    total, found = int(checked["held_out"]), int(checked["found"])
    listed, listed_found = int(checked.get("from_list") or 0), int(checked.get("from_list_found") or 0)
    if total - listed < _MIN_FAIR:
        listed = listed_found = 0
    return FairSample(found - listed_found, total - listed, listed_found, listed)
