"""What the model thinks of all images after a round of answers: one unchanging snapshot."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from protocon.base.parts import Parts
from protocon.labeller.audit_stream import Audit
from protocon.labeller.second_thoughts import doubted_labels
from protocon.picking.fast_model import FastModel
from protocon.picking.picker import Pick, Picker, joined

_PICKS = 24
_SHAPED = 2_000
"""Up to so many images there is time to find new neighbours after every few answers."""
SURE = 0.9
"""Probability of the likeliest class from which on an image counts as done."""
_APART = 8
"""Answers between two opinions whose agreement says something."""


@dataclass(frozen=True)
class Known:
    """Answers as arrays over the rows of features."""

    classes: tuple[str, ...]
    """Ids; a label is a position in here."""
    labels: np.ndarray
    """int64 (n,); −1 where there is no label."""
    audited: np.ndarray
    """bool (n,): answered as a random audit."""
    closed: np.ndarray
    """bool (n,): not to be picked: answered in whatever way, skipped, or gone."""
    answers: int
    """Labels and "none of these" so far."""
    version: int
    """Of the log: how many lines it had."""


@dataclass(frozen=True)
class ModelOpinion:
    """A round's result. Rows are positions among the features; `numbers` says which image each is."""

    numbers: np.ndarray
    rows: dict[int, int]
    known: Known
    round: int = 0
    probs: np.ndarray = field(default_factory=lambda: np.zeros((0, 0), dtype=np.float32))
    """(n, C); no columns before there is a label. Of the model that has seen all answers, once it is `complete`."""
    guess: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """Likeliest class (n,); −1 where there is no model."""
    sure: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.float32))
    """Its probability (n,)."""
    fair: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """Likeliest class by the model that has not seen audited answers (n,)."""
    likeness: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.float32))
    """Cosine to the nearest labelled image (n,)."""
    frequencies: np.ndarray = field(default_factory=lambda: np.zeros(0))
    picks: tuple[Pick, ...] = ()
    audit: Audit = field(default_factory=Audit)
    coverage: float = 0.0
    agreement: float | None = None
    """Share of unlabelled images whose class is what it was some answers ago."""
    whole: bool = False
    """Whether predictions have seen all answers, audited ones too."""
    doubted: tuple[tuple[int, int], ...] = ()
    """(row, class that fits better) of labels that look wrong, the worst first."""

    @property
    def unsure(self) -> int | None:
        """The work that is left: images without an answer of which the model is not sure; None without a model."""
        if not self.probs.size:
            return None
        return int(np.count_nonzero((self.sure < SURE) & ~self.known.closed))


@dataclass(frozen=True)
class Prepared:
    """Everything that depends on features alone: seconds of work at 10,000 images, and no answer is needed for it."""

    numbers: np.ndarray
    """The image number of each row."""
    features: np.ndarray
    picker: Picker
    model: FastModel | None
    chunks: int
    """From how many arrivals of features it was made."""


def prepared(numbers: Sequence[np.ndarray], features: Sequence[np.ndarray], parts: Parts | None) -> Prepared:
    """Take in features. Changes nothing, so that another thread may do it.

    Args:
        numbers: of the images, as they arrived.
        features: of the same.
        parts: what features consist of; None: all are one part.
    """
    all_numbers, all_features = np.concatenate(numbers), joined(features)
    picker = Picker(all_features, parts=parts)
    picker.prepare()
    model = FastModel(picker.seen) if len(all_features) > 1 else None
    return Prepared(all_numbers, all_features, picker, model, len(numbers))


@dataclass
class Thinker:
    """Forms opinions. Used by one thread.

    Everything that depends on features alone is prepared anew when enough of them have arrived.
    """

    numbers: list[np.ndarray] = field(default_factory=list)
    """Of the images whose features have arrived, as they came."""
    features: list[np.ndarray] = field(default_factory=list)
    parts: Parts | None = None
    """Lengths of the encoder's own features and of its pooled blocks; None: all are of one kind."""
    picker: Picker | None = None
    model: FastModel | None = None
    _prepared: int = 0
    _arrived: int = 0
    _round: int = 0
    _earlier: list[tuple[int, np.ndarray]] = field(default_factory=list)

    def add(self, numbers: np.ndarray, features: np.ndarray) -> None:
        """More images have features."""
        if len(numbers):
            self.numbers.append(numbers)
            self.features.append(features)
            self._arrived += len(numbers)

    def behind(self, *, finished: bool) -> bool:
        """Whether it is time to take in the features that have arrived: half as many again, or all there are."""
        return self._arrived > self._prepared and (finished or self._arrived >= 1.5 * self._prepared)

    def prepare(self) -> np.ndarray:
        """Take in all features, now; returns the image number of each row."""
        return self.adopt(prepared(self.numbers, self.features, self.parts))

    def adopt(self, ready: Prepared) -> np.ndarray:
        """Think with these features from now on; returns the image number of each row.

        Args:
            ready: made from the first of those that have arrived; later ones stay for the next time.
        """
        self.numbers[: ready.chunks] = [ready.numbers]
        self.features[: ready.chunks] = [ready.features]
        self.picker, self.model = ready.picker, ready.model
        self._prepared = len(ready.numbers)
        self._earlier = []
        return ready.numbers

    def think(self, numbers: np.ndarray, known: Known) -> ModelOpinion:
        """The opinion after these answers, of the model that sees no audited ones; `complete` adds these.

        Picks and coverage are this model's too: if they depended on audited answers, so would everything after them.
        """
        if self.picker is None:
            raise RuntimeError("prepare comes first")
        self._round += 1
        rows = {int(number): row for row, number in enumerate(numbers)}
        labels = np.where(known.audited, -1, known.labels)
        skip = np.flatnonzero(known.closed).tolist()
        if self.model is None or not (labels >= 0).any():
            picks = self.picker.next(_PICKS, labels=labels, skip=skip)
            nothing = np.zeros(len(numbers), dtype=np.float32)
            unknown = np.full(len(numbers), -1)
            return ModelOpinion(
                numbers, rows, known, self._round, picks=tuple(picks), guess=unknown, fair=unknown, sure=nothing,
                likeness=nothing, frequencies=np.zeros(len(known.classes)),
            )  # fmt: skip
        probs = self.model.predict(labels, classes=len(known.classes)).probs
        guess = probs.argmax(axis=1)
        right = known.audited & (guess == known.labels)  # "none of these" has no label: it counts as wrong
        return ModelOpinion(
            numbers=numbers,
            rows=rows,
            known=known,
            round=self._round,
            probs=probs,
            guess=guess,
            sure=probs.max(axis=1),
            fair=guess,
            likeness=_likeness(self.model.units, np.flatnonzero(known.labels >= 0)),
            frequencies=self.picker.prior(labels, classes=len(known.classes), probs=probs),
            picks=tuple(self.picker.next(_PICKS, labels, probs, skip=skip, shaped=len(labels) <= _SHAPED)),
            audit=Audit(int(known.audited.sum()), int(right.sum())),
            coverage=self.picker.covered(labels),
            agreement=self._agreement(guess, known),
            doubted=doubted_labels(self.model.points, known.labels),
        )

    def complete(self, opinion: ModelOpinion) -> ModelOpinion:
        """The same with predictions of a model that has seen all answers; what is measured and picked stays."""
        known = opinion.known
        if self.model is None or self.picker is None or not known.audited.any() or not opinion.probs.size:
            return replace(opinion, whole=True)
        probs = self.model.predict(known.labels, classes=len(known.classes)).probs
        self._round += 1
        return replace(
            opinion,
            round=self._round,
            probs=probs,
            guess=probs.argmax(axis=1),
            sure=probs.max(axis=1),
            frequencies=self.picker.prior(known.labels, classes=len(known.classes), probs=probs),
            whole=True,
        )

    def neighbours(self, row: int, among: np.ndarray, count: int) -> np.ndarray:
        """Rows of `among` most like a row, the nearest first.

        Args:
            row: of the image in the features.
            among: rows to choose from.
            count: how many at most.
        """
        if self.model is None or not len(among):
            return among[:count]
        units = self.model.units
        return among[np.argsort(-(units[among] @ units[row]), kind="stable")[:count]]

    def _agreement(self, guess: np.ndarray, known: Known) -> float | None:
        """Compare with the newest opinion that is some answers old."""
        ids = np.array(known.classes)[guess]
        self._earlier.append((known.answers, ids))
        old = [entry for entry in self._earlier if entry[0] <= known.answers - _APART]
        self._earlier = (old[-1:] if old else []) + [e for e in self._earlier if e[0] > known.answers - _APART]
        if not old:
            return None
        free = known.labels < 0
        return float((old[-1][1][free] == ids[free]).mean()) if free.any() else 1.0


def _likeness(units: np.ndarray, labelled: np.ndarray) -> np.ndarray:
    best = np.full(len(units), -1.0, dtype=np.float32)
    for start in range(0, len(labelled), 256):
        np.maximum(best, (units @ units[labelled[start : start + 256]].T).max(axis=1), out=best)
    return best


def empty_opinion(classes: Sequence[str] = ()) -> ModelOpinion:
    """Before anything is known."""
    none = np.zeros(0, dtype=np.int64)
    known = Known(tuple(classes), none, none.astype(bool), none.astype(bool), 0, 0)
    return ModelOpinion(none, {}, known)
