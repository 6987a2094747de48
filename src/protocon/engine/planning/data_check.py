"""What is in a user's data, and what training would do with it: every file accounted for."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from protocon.data.duplicates import Duplicates, find_duplicates
from protocon.data.files.file_report import FileReport, ImageFacts
from protocon.data.files.names import shown
from protocon.data.files.places import open_store
from protocon.data.files.stores import FileStore
from protocon.data.imageset import DataBundle
from protocon.data.registry import OWN
from protocon.data.source_options import Progress
from protocon.data.sources.listing import sort_out
from protocon.engine.planning.preview import describe_plan
from protocon.engine.setup.announce import describe_data
from protocon.errors import ProtoConError
from protocon.runs.run_data import choose_split, load_data
from protocon.settings.config import RunConfig


def check_data(config: RunConfig, *, progress: Progress | None = None, timed: bool = True) -> dict[str, Any]:
    """Everything that `protocon data check` tells; `ok` says whether training could go on.

    Args:
        config: as `train` would have it.
        progress: told how far decoding and comparing are.
        timed: measure how long training would take.
    """
    head: dict[str, Any] = {"data": config.data.name, "root": str(config.data.root or "")}
    try:
        bundle = load_data(config, progress)
    except ProtoConError as error:
        return head | {"ok": False, "errors": [str(error)]} | _listing(config.data.root)
    content: dict[str, Any] = head | {"ok": True, "errors": []} | _files(bundle)
    try:
        split = choose_split(config, bundle.train)
    except ProtoConError as error:
        return content | {"ok": False, "errors": [str(error)]}
    content |= describe_data(bundle, split, own=config.data.name in OWN)
    copies = find_duplicates(bundle, split.labelled, store=_store(config), progress=progress)
    content["duplicates"] = [_duplicate(group) for group in copies]
    content["warnings"] += [
        f"{' and '.join(shown(copy.file) for copy in group.copies[:3])}"
        f"{' and more' if len(group.copies) > 3 else ''} are duplicates ({group.kind}): {line}"
        for group in copies
        for line in group.warnings()
    ]
    try:
        plan = describe_plan(config, bundle, timed=timed)
    except ProtoConError as error:
        return content | {"ok": False, "errors": [str(error)]}
    keys = ("chosen", "sizes", "memory", "time")
    return content | {"training": {key: plan[key] for key in keys if key in plan}}


def _files(bundle: DataBundle) -> dict[str, Any]:
    report = bundle.files or FileReport(len(bundle.train) + (len(bundle.test) if bundle.test else 0))
    return {
        "files": {"found": report.total, "used": report.used, "skipped": len(report.skipped)},
        "shape": list(bundle.train.shape),
        "images": _images(report.facts),
        "skipped": [{"file": s.path, "reason": s.reason} for s in report.skipped],
        "warnings": list(report.warnings),
    }


def _images(facts: Sequence[ImageFacts]) -> dict[str, Any]:
    """Dimensions, modes and formats of the used files."""
    if not facts:
        return {}
    sides = {"width": [f.width for f in facts], "height": [f.height for f in facts]}
    sides["short side"] = [min(f.width, f.height) for f in facts]
    ranks = {"least": 0, "quarter": 25, "median": 50, "three quarters": 75, "most": 100}
    return {
        "sizes": {
            what: {name: int(np.percentile(values, rank)) for name, rank in ranks.items()}
            for what, values in sides.items()
        },
        "commonest": [
            {"width": w, "height": h, "images": n}
            for (w, h), n in Counter((f.width, f.height) for f in facts).most_common(5)
        ],
        "modes": dict(Counter(f.mode for f in facts).most_common()),
        "formats": dict(Counter(f.format for f in facts).most_common()),
    }


def _duplicate(group: Duplicates) -> dict[str, Any]:
    copies = [{"file": c.file, "part": c.part, "label": c.label} for c in group.copies]
    return {"kind": group.kind, "copies": copies}


def _store(config: RunConfig) -> FileStore | None:
    """The files, where ids are paths in them."""
    root = config.data.root
    if config.data.name not in ("folder", "imagefolder", "metadata") or root is None:
        return None
    return open_store(root.expanduser(), config.data.name, "")


def _listing(root: Path | None) -> dict[str, Any]:
    """What can be said of the files where the data as a whole cannot be read."""
    try:
        if root is None:
            return {}
        images, skipped = sort_out(open_store(root.expanduser(), "folder", "").files())
    except (ProtoConError, OSError):
        return {}
    return {
        "files": {"found": len(images) + len(skipped), "used": 0, "skipped": len(skipped)},
        "unused_images": [entry.path for entry in images],
        "skipped": [{"file": s.path, "reason": s.reason} for s in skipped],
        "warnings": [],
    }
