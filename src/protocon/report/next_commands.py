"""The commands that come next, whole, to be copied from a page."""

import shlex

from protocon.report.record import Record
from protocon.runs import layout

FOLDERS = ("folder", "imagefolder", "metadata")
"""Data sources whose images are files below the root."""


def train_again(record: Record) -> str:
    """Train on the same images with the run's own table of labels, once it is corrected; empty if they are no files.

    Args:
        record: of the run.
    """
    root = str(record.data.get("root") or "")
    if record.data.get("data") not in FOLDERS or not root:
        return ""
    return shlex.join(["protocon", "train", root, "--labels", str(record.path / layout.LABELS)])


def sort_into_folders(record: Record) -> str:
    """Put the accepted images into class folders; empty if they are no files.

    Args:
        record: of the run.
    """
    if not train_again(record):
        return ""
    return shlex.join(["protocon", "export", str(record.path), "--format", "folders", "--out", "sorted"])


def audit(record: Record) -> str:
    """Draw images for a fair estimate.

    Args:
        record: of the run.
    """
    return shlex.join(["protocon", "audit", str(record.path)])
