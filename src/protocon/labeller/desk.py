"""The desk at which somebody labels: answers come in, questions go out, the model's latest opinion lies there.

Requests and the background worker meet here. One lock guards the log and what it comes to; an opinion is replaced as a
whole, so that nobody waits for the model.
"""

import getpass
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import numpy as np

from protocon.data.files.names import normal
from protocon.data.labels.answers import AUDIT, Act, Answer, Answers, Entry, ImageRef, reduce
from protocon.errors import ConfigError, DataError
from protocon.labeller.answer_log import AnswerLog
from protocon.labeller.class_names import checked_name
from protocon.labeller.labels_file import LabelsFile
from protocon.labeller.opinion import Known, ModelOpinion, Thinker, empty_opinion
from protocon.labeller.photos import Photos
from protocon.labeller.stream import Question, Stream

_ASKED = ("pick", AUDIT)


class StaleError(DataError):
    """The page shows something else than what is there now."""


class Desk:
    """Everything that a page asks for or changes.

    Args:
        photos: the images.
        log: of answers.
        labels: the file that is derived from it.
        who: answers, by default the user of this computer.
    """

    def __init__(self, photos: Photos, log: AnswerLog, labels: LabelsFile, *, who: str | None = None) -> None:
        self.photos = photos
        self.log = log
        self.labels = labels
        self.who = who or _user()
        self.thinker = Thinker()
        self.opinion: ModelOpinion = empty_opinion()
        self.stream = Stream(photos)
        self.features_done = 0
        self.trouble: str | None = None
        """What keeps the model from thinking; labelling continues without it."""
        self.remarks: list[str] = [f"{log.path.name}, {problem}" for problem in log.problems]
        self.changed_at = time.monotonic()
        self.lock = threading.RLock()
        self._places: dict[ImageRef, int | None] = {}
        self._closed: dict[int, Answer] = {}
        self.answers: Answers = reduce(())
        with self.lock:
            self._import()
            self._recount()

    # ---- answers ----

    def answer(
        self,
        do: Act,
        images: Sequence[tuple[int, str]],
        *,
        key: str,
        class_id: str = "",
        name: str = "",
        why: str = "review",
    ) -> Entry:
        """Write an answer about images, given by number and stamp. It is on disk when this returns.

        Args:
            do: what is said of the images.
            images: number and stamp of each.
            key: of this answer: a repeated one is not written twice.
            class_id: the class, where there is one.
            name: the class's name, as the page showed it.
            why: why the images were shown.

        Raises:
            NotSavedError: it is not.
            StaleError: a number means another file than the page shows, or the class is gone.
        """
        with self.lock:
            if known := self.log.find(key):
                return known
            refs = tuple(self._ref(number, stamp) for number, stamp in images)
            if do == "label":
                class_id, name = self._class(class_id, name)
            if why == AUDIT and (len(refs) != 1 or refs[0] in self.answers.images):
                why = "review"  # an image that was answered before is no random draw
            entry = self._entry(do, key=key, images=refs, why=why, predicted=self._predicted(images))
            if do == "label":
                entry = _with_class(entry, class_id, name)
            entry = self.log.append(entry)
            for (number, _), ref in zip(images, refs, strict=True):
                self._places[ref] = number
            self._recount()
            return entry

    def undo(self, *, key: str, of: str | None = None) -> Entry | None:
        """Undo a line, by default the latest that counts. Returns the line that no longer counts, if there is one."""
        with self.lock:
            if known := self.log.find(key):
                return self.log.find(known.of)
            counting = self.answers.counting
            chosen = next((e for e in reversed(counting) if of is None or e.key == of), None)
            if chosen is None:
                return None
            self.log.append(self._entry("undo", key=key, of=chosen.key))
            self._recount()
            return chosen

    def rename(self, class_id: str, name: str, *, key: str) -> None:
        """Give a class another name. A name that another class has is refused: that is a merge.

        Args:
            class_id: the class.
            name: its new name.
            key: of this act: a repeated one is not written twice.
        """
        with self.lock:
            name = checked_name(name)
            self._need_class(class_id)
            holder = self._named(name)
            if holder not in (None, class_id):
                raise ConfigError(f"there is a class {name!r} already; merge the two instead")
            self.log.append(self._entry("rename", key=key, class_id=class_id, name=name))
            self._recount()

    def merge(self, class_id: str, into: str, *, key: str) -> None:
        """Make two classes one: all labels of the first are labels of the second.

        Args:
            class_id: the class that goes.
            into: the class that stays.
            key: of this act: a repeated one is not written twice.
        """
        with self.lock:
            self._need_class(class_id)
            self._need_class(into)
            if class_id == into:
                raise ConfigError("a class cannot be merged with itself; choose another")
            self.log.append(self._entry("merge", key=key, class_id=class_id, into=into))
            self._recount()

    def add_class(self, name: str, *, key: str) -> str:
        """A class without images as yet; returns its id. One that is there already is not made twice."""
        with self.lock:
            known = self._named(checked_name(name))
            if known is not None:
                return known
            class_id, name = self._class("", name)
            self.log.append(self._entry("class", key=key, class_id=class_id, name=name))
            self._recount()
            return class_id

    # ---- questions ----

    def next(self, tab: str) -> Question | None:
        """The next question for a tab. Files that have vanished are passed over."""
        with self.lock:
            for _ in range(100):
                question = self.stream.next(tab, self.opinion, self.is_closed, **self._counts())
                if question is None:
                    return None
                try:
                    self.photos.ref(question.number)  # so that the answer counts even if the file vanishes
                except DataError:
                    self.photos.gone.add(question.number)
                    continue
                return question
            return None

    def ahead(self, tab: str, now: int) -> list[int]:
        """Images that are likely to come after this one."""
        with self.lock:
            return self.stream.ahead(tab, self.opinion, self.is_closed, now=now, **self._counts())

    def is_closed(self, number: int) -> bool:
        """Whether an image was answered or skipped, or is gone."""
        return number in self._closed or number in self.photos.gone

    def answer_of(self, number: int) -> Answer | None:
        """What was said of an image."""
        return self._closed.get(number)

    def place(self, image: ImageRef) -> int | None:
        """The number of the image that an answer names; None if it is not there."""
        return self._places.get(image)

    def closed(self) -> dict[int, Answer]:
        """What was said of each answered image, by number. Not to be changed."""
        return self._closed

    def labelled(self) -> dict[int, str]:
        """Class id by number, of images that have a label."""
        return {number: answer.class_id for number, answer in self._closed.items() if answer.do == "label"}

    def _counts(self) -> dict[str, int]:
        asked = [e for e in self.answers.counting if e.why in _ASKED]
        return {"questions": len(asked), "audits": sum(e.why == AUDIT for e in asked)}

    # ---- for the worker ----

    @property
    def version(self) -> int:
        """How many lines the log has."""
        return len(self.log.entries)

    def known(self, numbers: np.ndarray) -> Known:
        """Answers as arrays over these images."""
        with self.lock:
            classes = tuple(self.answers.classes)
            places = {class_id: place for place, class_id in enumerate(classes)}
            rows = {int(number): row for row, number in enumerate(numbers)}
            labels = np.full(len(numbers), -1, dtype=np.int64)
            audited, closed = np.zeros(len(numbers), dtype=bool), np.zeros(len(numbers), dtype=bool)
            for number, answer in self._closed.items():
                row = rows.get(number)
                if row is None:
                    continue
                closed[row] = True
                if answer.do == "label":
                    labels[row] = places[answer.class_id]
            for image in self.answers.audited:
                place = self._places.get(image)
                if place in rows and self._closed[place].do != "skip":
                    audited[rows[place]] = True
            for number in self.photos.gone & rows.keys():
                closed[rows[number]] = True
            answers = sum(answer.do != "skip" for answer in self._closed.values())
            return Known(classes, labels, audited, closed, answers, self.version)

    def write_labels(self) -> None:
        """Bring labels.csv up to date."""
        with self.lock:
            rows = [
                (
                    self.photos.files[number].path,
                    self.answers.classes[a.class_id] if a.do == "label" else "",
                    a.why if a.do == "label" else "none of these",
                )
                for number, a in self._closed.items()
                if a.do != "skip" and number not in self.photos.gone
            ]
            kept = self.labels.write(rows)
            if kept is not None:
                self.remarks.append(
                    f"{self.labels.path.name} was changed by somebody else; that one is {kept.name} now"
                )

    def refresh(self) -> bool:
        """Look at the folder again; whether anything has changed."""
        change = self.photos.refresh()
        if not change.added and not change.gone:
            return False
        with self.lock:
            gone = set(change.gone)
            self._places = {ref: n for ref, n in self._places.items() if n is not None and n not in gone}
            self._recount()
        return True

    # ---- inside ----

    def _recount(self) -> None:
        self.answers = reduce(self.log.entries)
        closed: dict[int, Answer] = {}
        for ref, answer in self.answers.images.items():
            if ref not in self._places:
                self._places[ref] = self.photos.find(ref)
            number = self._places[ref]
            if number is not None:
                closed[number] = answer
        self._closed = closed
        self.changed_at = time.monotonic()

    def _ref(self, number: int, stamp: str) -> ImageRef:
        if not 0 <= number < len(self.photos) or self.photos.stamp(number) != stamp:
            raise StaleError(f"image {number} is not what the page shows; the folder has changed. Load the page again")
        return self.photos.ref(number)

    def _entry(self, do: Act, **values: Any) -> Entry:
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        values.setdefault("key", uuid4().hex)
        return Entry(at=now, who=self.who, do=do, **values)

    def _predicted(self, images: Sequence[tuple[int, str]]) -> dict[str, Any]:
        """What the model that sees no audited answers says of a single image."""
        opinion = self.opinion
        row = opinion.rows.get(images[0][0]) if len(images) == 1 else None
        if row is None or not opinion.probs.size or opinion.fair[row] < 0:
            return {}
        class_id = opinion.known.classes[int(opinion.fair[row])]
        return {"class": self.answers.classes.get(class_id, class_id), "round": opinion.round}

    def _class(self, class_id: str, name: str) -> tuple[str, str]:
        """Id and name of a class that is there, or of a new one."""
        if class_id:
            self._need_class(class_id)
            return class_id, self.answers.classes[class_id]
        name = checked_name(name)
        known = self._named(name)
        if known is not None:
            return known, self.answers.classes[known]
        numbers = {entry.class_id for entry in self.log.entries if entry.class_id}
        return f"c{len(numbers) + 1}", name

    def _named(self, name: str) -> str | None:
        """The class of this name, whatever its capitals."""
        wanted = name.casefold()
        return next((i for i, known in self.answers.classes.items() if known.casefold() == wanted), None)

    def _need_class(self, class_id: str) -> None:
        if class_id not in self.answers.classes:
            raise StaleError("this class is not there any more; it was undone or merged. Load the page again")

    def _import(self) -> None:
        """Take over rows of a labels.csv that we did not write, or that somebody edited since."""
        self.answers = reduce(self.log.entries)
        rows = self.labels.foreign_rows()
        wanted: dict[str, list[ImageRef]] = {}
        missing = 0
        numbers = {normal(entry.path): n for n, entry in enumerate(self.photos.files)} if rows else {}
        for row in rows:
            try:
                ref = self.photos.ref(numbers[normal(row.file)])
            except (KeyError, DataError):
                missing += 1
                continue
            if self.answers.label(ref) != checked_name(row.label):
                wanted.setdefault(checked_name(row.label), []).append(ref)
        digest = self.labels.digest()[:16] if rows else ""
        for name, refs in wanted.items():
            class_id, name = self._class("", name)
            entry = self._entry("label", key=f"import-{digest}-{class_id}", images=tuple(refs), why="import")
            self.log.append(_with_class(entry, class_id, name))
            self.answers = reduce(self.log.entries)
        if wanted:
            count = sum(map(len, wanted.values()))
            self.remarks.append(f"{count:,} labels were taken over from {self.labels.path.name}")
        if missing:
            self.remarks.append(f"{missing:,} rows of {self.labels.path.name} name no image that can be read")


def _with_class(entry: Entry, class_id: str, name: str) -> Entry:
    return replace(entry, class_id=class_id, name=name)


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "unknown"
