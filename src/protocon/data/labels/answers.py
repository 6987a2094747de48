"""Answers of a person who labels images: the lines of a log, and what they come to.

The log only ever grows. A line is one JSON object: an answer about one or more images, a class that is made, renamed
or merged, or an `undo` of an earlier line. What counts in the end is a pure function of the lines, so a killed program
loses nothing, and everything can be undone. Images are named by path *and* by the digest of their bytes: an answer
never passes to another file that takes over the name.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from protocon.data.files.digests import file_digest
from protocon.errors import DataError

Act = Literal["label", "none", "skip", "class", "rename", "merge", "undo"]
ACTS: tuple[str, ...] = get_args(Act)
_ABOUT_IMAGES = ("label", "none", "skip")
_NEEDED: dict[str, tuple[str, ...]] = {
    "label": ("class_id", "name"),
    "class": ("class_id", "name"),
    "rename": ("class_id", "name"),
    "merge": ("class_id", "into"),
    "undo": ("of",),
}
AUDIT = "audit"
"""Why an image was shown: drawn at random, to measure accuracy."""


class ImageRef(NamedTuple):
    """An image as an answer names it."""

    path: str
    """Relative to the folder, with forward slashes."""
    sha256: str
    """Of the file's bytes."""
    size: int
    """Bytes."""


@dataclass(frozen=True)
class Entry:
    """One line of the log."""

    key: str
    """Unique; a client that sends an answer twice sends the same key."""
    at: str
    """ISO 8601, UTC."""
    who: str
    do: Act
    images: tuple[ImageRef, ...] = ()
    class_id: str = ""
    """Of label, class, rename and merge. Names change, ids do not."""
    name: str = ""
    """The class's name then; of rename, its new name."""
    into: str = ""
    """Of merge: the id of the class that remains."""
    of: str = ""
    """Of undo: the key of the line that no longer counts."""
    why: str = ""
    """Why these images were shown: pick, audit, grid, review or import."""
    predicted: dict[str, Any] = field(default_factory=dict)
    """What the model said before the answer."""

    def line(self) -> str:
        """As one line of text, without its end."""
        content: dict[str, Any] = {"key": self.key, "at": self.at, "who": self.who, "do": self.do}
        if self.images:
            content["images"] = [image._asdict() for image in self.images]
        for name in ("class_id", "name", "into", "of", "why", "predicted"):
            if value := getattr(self, name):
                content[name] = value
        return json.dumps(content)  # ASCII: a file name need not be valid text


@dataclass(frozen=True)
class Answer:
    """What counts for one image."""

    do: Act
    """label, none or skip."""
    class_id: str
    """Empty unless it is a label."""
    why: str
    key: str
    """Of the line that says so."""


@dataclass(frozen=True)
class Answers:
    """What a log comes to."""

    classes: dict[str, str]
    """Name by id, in the order in which they were first mentioned; merged ones are not among them."""
    images: dict[ImageRef, Answer]
    """In the order of the answers that count."""
    audited: frozenset[ImageRef]
    """Images of which an answer to a random audit counts."""
    counting: tuple[Entry, ...]
    """The lines that are not undone, undos left out."""

    def label(self, image: ImageRef) -> str | None:
        """The image's class by name; None if it has none."""
        answer = self.images.get(image)
        return self.classes[answer.class_id] if answer is not None and answer.do == "label" else None


def reduce(entries: Sequence[Entry]) -> Answers:
    """What the lines come to: the latest answer about an image counts, undone lines do not.

    A skip never replaces an answer. A class keeps the name of its first mention unless a rename counts. Classes that
    come to have the same name (one renamed, then undone) are one class.
    """
    counting = _counting(entries)
    births: dict[str, str] = {}
    known_then: set[str] = set()  # keys of merges of two classes that were there
    for entry in entries:
        if entry.do in ("label", "class"):
            births.setdefault(entry.class_id, entry.name)
        elif entry.do == "merge" and {entry.class_id, entry.into} <= births.keys():
            known_then.add(entry.key)
    mentioned: set[str] = set()
    renamed: dict[str, str] = {}
    parents: dict[str, str] = {}
    images: dict[ImageRef, Answer] = {}
    audited: set[ImageRef] = set()
    for entry in counting:
        if entry.do in ("label", "class"):
            mentioned.add(entry.class_id)
        if entry.do == "rename":
            renamed[entry.class_id] = entry.name
        elif entry.key in known_then:
            _merge(parents, entry.class_id, entry.into)
        for image in entry.images:
            if entry.do == "skip" and image in images:
                continue
            images.pop(image, None)
            images[image] = Answer(entry.do, entry.class_id, entry.why, entry.key)
            if entry.why == AUDIT:
                audited.add(image)
    roots, classes = _unify([i for i in births if i in mentioned], births | renamed, parents)
    images = {
        image: Answer(a.do, roots.get(a.class_id, a.class_id), a.why, a.key) if a.class_id else a
        for image, a in images.items()
    }
    return Answers(classes, images, frozenset(audited), counting)


def _counting(entries: Sequence[Entry]) -> tuple[Entry, ...]:
    """Lines that no counting undo names. An undo can itself be undone."""
    gone: set[str] = set()
    kept: list[Entry] = []
    for entry in reversed(entries):
        if entry.key in gone:
            continue
        if entry.do == "undo":
            gone.add(entry.of)
        else:
            kept.append(entry)
    return tuple(reversed(kept))


def _root(parents: dict[str, str], number: str) -> str:
    while number in parents:
        number = parents[number]
    return number


def _merge(parents: dict[str, str], one: str, into: str) -> None:
    first, second = _root(parents, one), _root(parents, into)
    if first != second:
        parents[first] = second


def _unify(
    numbers: Iterable[str], names: dict[str, str], parents: dict[str, str]
) -> tuple[dict[str, str], dict[str, str]]:
    """The class that each id stands for, and the names of those that remain, in order of first mention."""
    by_name: dict[str, str] = {}
    roots: dict[str, str] = {}
    classes: dict[str, str] = {}
    for number in numbers:
        root = _root(parents, number)
        roots[number] = by_name.setdefault(names[root], root)
        classes.setdefault(roots[number], names[root])
    return roots, classes


def parse_lines(content: bytes) -> tuple[list[Entry], list[str]]:
    """Entries of a log, and what is wrong with lines that cannot be used.

    A line that was cut short by a crash was never acknowledged. A line whose key was there before is a repetition.
    """
    entries: list[Entry] = []
    problems: list[str] = []
    keys: set[str] = set()
    for number, line in enumerate(content.split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            entry = _entry(json.loads(line))
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            problems.append(f"line {number}: not an entry ({type(error).__name__}: {error})")
            continue
        if entry.key not in keys:
            keys.add(entry.key)
            entries.append(entry)
    return entries, problems


def _entry(content: Any) -> Entry:
    if not isinstance(content, dict) or content.get("do") not in ACTS:
        raise ValueError(f"expected an object with do = {', '.join(ACTS)}")
    texts = {name: content.get(name, "") for name in ("key", "at", "who", "class_id", "name", "into", "of", "why")}
    if not all(isinstance(value, str) for value in texts.values()) or not texts["key"]:
        raise ValueError("expected text in key, at, who, class_id, name, into, of and why")
    for name in ("name", "who"):
        texts[name].encode("utf-8")  # a ValueError where it holds half a character, which no page can show
    images = tuple(ImageRef(str(i["path"]), str(i["sha256"]), int(i["size"])) for i in content.get("images", ()))
    do: Act = content["do"]
    if do in _ABOUT_IMAGES and not images:
        raise ValueError(f"{do} without images")
    if missing := [name for name in _NEEDED.get(do, ()) if not texts[name]]:
        raise ValueError(f"{do} without {', '.join(missing)}")
    predicted = content.get("predicted", {})
    return Entry(do=do, images=images, predicted=predicted if isinstance(predicted, dict) else {}, **texts)


def labelled_files(entries: Iterable[Entry], root: Path) -> tuple[list[tuple[str, str]], list[str]]:
    """(path, class name) of every image below `root` that has a label, and a line for each that has changed since.

    Files that are not there are listed all the same: whoever reads the labels tells which rows name no file.
    """
    answers = reduce(list(entries))
    rows: list[tuple[str, str]] = []
    problems: list[str] = []
    for image in answers.images:
        label = answers.label(image)
        if label is None:
            continue
        try:
            same = file_digest(root / image.path) == image.sha256
        except (OSError, ValueError):
            same = True
        if same:
            rows.append((image.path, label))
        else:
            problems.append(f"{image.path} has changed since it was labelled {label!r}")
    return rows, problems


def read_log(path: Path) -> tuple[list[Entry], list[str]]:
    """Entries of a log file, and what is wrong with it."""
    try:
        return parse_lines(path.read_bytes())
    except OSError as error:
        raise DataError(f"the log of answers {path} cannot be read: {error.strerror or error}") from error
