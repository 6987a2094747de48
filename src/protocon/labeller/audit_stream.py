"""How often the model is right, from images that were drawn at random.

An audited answer is never shown to the model that is measured: whatever this model says of the image, it says without
having seen the answer, at any later time as well as before. So all audited images measure the model of today.
"""

import hashlib
import math
from dataclasses import dataclass
from typing import Any

from protocon.report.intervals import wilson_interval

EVERY = 5
"""One question in so many is an audit."""
ENOUGH = 20
"""Audited images from which on the interval says something."""


@dataclass(frozen=True)
class Audit:
    """Audited answers, and how many of them the model had."""

    asked: int = 0
    right: int = 0

    @property
    def share(self) -> float:
        """Of right ones; NaN where nothing was asked."""
        return self.right / self.asked if self.asked else math.nan

    @property
    def interval(self) -> tuple[float, float]:
        """95 %, Wilson's."""
        return wilson_interval(self.share if self.asked else 0.0, self.asked)

    def facts(self) -> dict[str, Any]:
        """For the page."""
        low, high = self.interval
        return {
            "asked": self.asked,
            "right": self.right,
            "share": self.share if self.asked else None,
            "low": low,
            "high": high,
        }


def due(questions: int, audits: int) -> bool:
    """Whether the next question should be an audit: every fifth."""
    return EVERY * (audits + 1) <= questions + 1


def audit_order(path: str) -> bytes:
    """Sorting by this shuffles images, in a way that has nothing to do with what they show or how they are picked."""
    return hashlib.sha256(b"audit\0" + path.encode("utf-8", "surrogateescape")).digest()
