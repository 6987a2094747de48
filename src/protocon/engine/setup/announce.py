"""What a run says before it starts, and keeps in data.json: every file, every class, every chosen value."""

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import numpy as np
from rich.console import Console

from protocon.base.atomic import write_bytes
from protocon.base.say import say as say_to
from protocon.base.stage_bar import StageBar
from protocon.data.files.file_report import FileReport
from protocon.data.files.names import shown
from protocon.data.imageset import UNKNOWN, DataBundle
from protocon.data.labels.label_split import Split
from protocon.data.registry import OWN
from protocon.data.source_options import Progress as Tell
from protocon.engine.setup.mirrors import MirrorAnswer
from protocon.engine.setup.settled import Settled
from protocon.runs import layout
from protocon.runs.run_folder import RunFolder
from protocon.settings.config import to_yaml

_SHOWN = 20
_SHOWN_BRIEFLY = 5
_WORTH_A_BAR = 200


@contextmanager
def bar(console: Console) -> Iterator[Tell]:
    """A live bar for anything that takes long enough, gone when it is done; nothing in a file or a pipe."""
    with ExitStack() as stack:
        bars: dict[tuple[str, int], StageBar] = {}

        def tell(what: str, done: int, total: int) -> None:
            if total < _WORTH_A_BAR:
                return
            if (what, total) not in bars:
                stack.close()  # one at a time
                new = StageBar(console, title=what, total=total, unit="images", transient=True)
                bars[what, total] = stack.enter_context(new)
            bars[what, total].update(done)

        yield tell


def announce(settled: Settled, console: Console, *, verbose: bool = False) -> None:
    """Say what became of the files and which classes there are; in `verbose` also what `auto` chose and why.

    All of it is in data.json and in the report, too.

    Args:
        settled: settings, data and labels.
        console: where it is said.
        verbose: say every skipped file and every chosen value too.
    """
    say = partial(say_to, console)
    bundle, split = settled.bundle, settled.split
    for line in file_lines(bundle.files, verbose=verbose):
        say(line)
    test = 0 if bundle.test is None else len(bundle.test)
    names = bundle.train.class_names
    tested = f", {test:,} test images" if test else ""
    say(f"{len(names)} classes, {len(split.labelled):,} labelled, {len(split.unlabelled):,} unlabelled{tested}")
    if verbose:
        for key, reason in settled.resolved.reasons.items():
            say(f"  {key}: {reason}")


def file_lines(report: FileReport | None, *, verbose: bool = True) -> Iterator[str]:
    """The report on a person's screen: what is odd, a few lines of it; in `verbose` more, and each skipped file."""
    if report is None:
        return
    yield report.summary()
    lists = {
        "note": list(report.notes),
        "skipped": [f"{shown(skip.path)}: {shown(skip.reason)}" for skip in report.skipped],
        "warning": list(report.warnings),
    }
    for kind, lines in lists.items():
        if kind == "skipped" and not verbose:
            continue  # the summary counts them by reason
        most = _SHOWN if verbose else _SHOWN_BRIEFLY
        for line in lines[:most]:
            yield f"{kind}: {line}"
        if len(lines) > most:
            yield f"{kind}: and {len(lines) - most:,} more; all are in data.json"


def frequencies_line(shares: Sequence[float], names: Sequence[str]) -> str:
    """Estimated class frequencies, the largest first, and how to overrule them.

    Args:
        shares: one per class.
        names: of the classes.
    """
    order = sorted(range(len(names)), key=lambda label: -shares[label])
    most = _SHOWN_BRIEFLY + (len(order) == _SHOWN_BRIEFLY + 1)  # a single other one may as well be named
    listed = [f"{100 * shares[label]:.0f} % {shown(names[label])}" for label in order[:most]]
    if len(order) > most:
        rest = sum(shares[label] for label in order[most:])
        listed.append(f"{100 * rest:.0f} % the other {len(order) - most}")
    return (
        f"class frequencies, estimated: {', '.join(listed)}. To overrule it: class_prior=uniform or class_prior=["
        f"{','.join(f'{share:.2f}' for share in shares[:2])}"
        f"{',…' if len(names) > 2 else ''}]"
    )


def keep_record(folder: RunFolder, settled: Settled) -> None:
    """Write data.json; text is escaped, since a file name need not be valid UTF-8."""
    content = describe_data(settled.bundle, settled.split, own=settled.config.data.name in OWN)
    content |= {"data": settled.config.data.name, "root": str(settled.config.data.root or "")}
    content["auto"] = settled.resolved.reasons
    write_bytes(folder.path / layout.DATA, (json.dumps(content, indent=1) + "\n").encode())


def keep_answer(folder: RunFolder, settled: Settled, answer: MirrorAnswer) -> None:
    """Add to data.json what the labels said of mirror images, and to resolved.yaml what follows from it.

    Args:
        folder: of the run.
        settled: with the answer taken into account.
        answer: what the labels said.
    """
    file = folder.path / layout.DATA
    content = json.loads(file.read_text(encoding="utf-8"))
    notes = content.setdefault("notes", [])
    if answer.line and answer.line not in notes:
        notes.append(answer.line)
    content.setdefault("auto", {})["views.flip"] = answer.reason
    write_bytes(file, (json.dumps(content, indent=1) + "\n").encode())
    if answer.line:
        write_bytes(folder.path / layout.RESOLVED, to_yaml(settled.config).encode())


def describe_data(bundle: DataBundle, split: Split, *, own: bool) -> dict[str, Any]:
    """Every file, used or skipped; of a benchmark only how many are used, since everybody has the same.

    Args:
        bundle: the data.
        split: which images are labelled.
        own: whether they are one's own: then every file is named.
    """
    train, test, report = bundle.train, bundle.test, bundle.files
    names = train.class_names
    labels = {
        "labelled": split.counts,
        "known": np.bincount(train.labels[train.labels != UNKNOWN], minlength=len(names)),
        "test": np.bincount(test.labels, minlength=len(names)) if test is not None else np.zeros(len(names), dtype=int),
    }
    used: dict[str, Any] = {
        "labelled": len(split.labelled),
        "unlabelled": len(split.unlabelled),
        "test": 0 if test is None else len(test),
    }
    content: dict[str, Any] = {
        "classes": [
            {"name": name, **{part: int(counts[number]) for part, counts in labels.items()}}
            for number, name in enumerate(names)
        ],
        "counts": used,
        "skipped": [{"file": s.path, "reason": s.reason} for s in report.skipped] if report else [],
        "notes": list(report.notes) if report else [],
        "warnings": list(report.warnings) if report else [],
        "labels_from_list": list(report.listed) if report else [],
    }
    if own:
        content["used"] = {
            "labelled": [
                {"file": name, "label": names[int(c)]} for name, c in zip(split.ids, split.labels, strict=True)
            ],
            "unlabelled": [train.ids[int(i)] for i in split.unlabelled],
            "test": [] if test is None else list(test.ids),
        }
    return content
