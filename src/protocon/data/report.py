"""What became of every file that a source found."""

from collections import Counter
from dataclasses import dataclass


@dataclass(frozen=True)
class SkippedFile:
    """One file that is not used, and why."""

    path: str
    reason: str


@dataclass(frozen=True)
class FileReport:
    """Every file is in here once: counted as used, or listed as skipped."""

    used: int
    skipped: tuple[SkippedFile, ...] = ()

    @property
    def total(self) -> int:
        """Files found."""
        return self.used + len(self.skipped)

    def summary(self) -> str:
        """One line for the log: `12 files: 10 used, 2 skipped (2 empty file)`."""
        text = f"{self.total:,} files: {self.used:,} used, {len(self.skipped):,} skipped"
        if not self.skipped:
            return text
        reasons = Counter(skip.reason for skip in self.skipped).most_common()
        return text + " (" + "; ".join(f"{count:,} {reason}" for reason, count in reasons) + ")"
