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
