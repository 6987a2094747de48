"""What became of every file that a source found."""

from collections import Counter
from dataclasses import dataclass


@dataclass(frozen=True)
class SkippedFile:
    """One file that is not used, and why."""

    path: str
    reason: str


@dataclass(frozen=True)
class ImageFacts:
    """What an image file says of itself."""

    path: str
    width: int
    height: int
    mode: str
    """Pillow's: RGB, L, P, CMYK, …"""
    format: str
    """JPEG, PNG, …"""
    frames: int = 1


@dataclass(frozen=True)
class FileReport:
    """Every file is in here once: counted as used, or listed as skipped."""

    used: int
    skipped: tuple[SkippedFile, ...] = ()
    warnings: tuple[str, ...] = ()
    """What a user should know of the labels and files, one line each."""
    notes: tuple[str, ...] = ()
    """What was taken for what in the labels, one line each: nothing is wrong with it."""
    facts: tuple[ImageFacts, ...] = ()
    """Of the used files, where they were decoded before training."""
    listed: tuple[str, ...] = ()
    """Files whose labels answer for a list to look at: they are harder than others."""

    @property
    def total(self) -> int:
        """Files found."""
        return self.used + len(self.skipped)

    def summary(self) -> str:
        """One line for the log: `12 files: 10 used, 2 skipped (2 empty file)`."""
        text = f"{self.total:,} files: {self.used:,} used, {len(self.skipped):,} skipped"
        if not self.skipped:
            return text
        # What follows a colon or full stop is about one file.
        kinds = (skip.reason.partition(":")[0].partition(". ")[0] for skip in self.skipped)
        reasons = Counter(kinds).most_common()
        return text + " (" + "; ".join(f"{count:,} {reason}" for reason, count in reasons) + ")"
