"""Which image is shown next: picks, with a random audit mixed in, never the same image in two tabs at once."""

import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

from protocon.data.labels.answers import AUDIT
from protocon.labeller.audit_stream import audit_order, due
from protocon.labeller.opinion import ModelOpinion
from protocon.labeller.photos import Photos

_LEASE_SECONDS = 120.0
_TABS = 32
PICK = "pick"


class Question(NamedTuple):
    """An image to ask about."""

    number: int
    why: str
    """pick or audit."""
    reason: str = ""
    stands_for: int = 0


class Stream:
    """The next questions. The desk's lock guards it.

    Args:
        photos: the images.
        clock: seconds, for leases.
    """

    def __init__(self, photos: Photos, clock: Callable[[], float] = time.monotonic) -> None:
        self.photos = photos
        self._clock = clock
        self._leases: dict[str, tuple[Question, float]] = {}
        self._drawn: list[int] = []
        self._drawn_from = 0

    def next(
        self, tab: str, opinion: ModelOpinion, closed: Callable[[int], bool], *, questions: int, audits: int
    ) -> Question | None:
        """The next question for a tab; it is this tab's for two minutes. None if nothing is left.

        A tab that has not answered its question yet, such as one that was loaded again, gets the same.

        Args:
            tab: who asks.
            opinion: picks come from here.
            closed: whether an image needs no question: answered, skipped or gone.
            questions: how many were answered so far.
            audits: how many of them were audits.
        """
        held = self._leases.get(tab)
        if held is not None and not closed(held[0].number):
            found: Question | None = held[0]
        else:
            found = next(self._questions(tab, opinion, closed, questions=questions, audits=audits), None)
        if found is not None:
            self._leases[tab] = (found, self._clock())
            self._forget()
        return found

    def ahead(
        self, tab: str, opinion: ModelOpinion, closed: Callable[[int], bool], *, questions: int, audits: int, now: int
    ) -> list[int]:
        """Images that are likely to come after `now`, so that a page can fetch them before.

        Args:
            tab: of the browser.
            opinion: of the model, with its picks.
            closed: whether an image has its answer.
            questions: asked so far.
            audits: asked so far to measure accuracy.
            now: number of the image that is shown.
        """
        found = []
        for extra in (1, 2):
            following = self._questions(
                tab, opinion, lambda n: n == now or n in found or closed(n), questions=questions + extra, audits=audits
            )
            question = next(following, None)
            if question is not None:
                found.append(question.number)
        return found

    def _forget(self) -> None:
        """Tabs that were closed long ago."""
        if len(self._leases) > _TABS:
            oldest = min(self._leases, key=lambda tab: self._leases[tab][1])
            del self._leases[oldest]

    def _questions(
        self, tab: str, opinion: ModelOpinion, closed: Callable[[int], bool], *, questions: int, audits: int
    ) -> Iterator[Question]:
        def free(number: int) -> bool:
            return not closed(number) and not self._taken(number, tab)

        if due(questions, audits):
            yield from (Question(n, AUDIT) for n in self._audit_order() if free(n))
        for pick in opinion.picks:
            number = int(opinion.numbers[pick.index])
            if free(number):
                yield Question(number, PICK, pick.reason, pick.stands_for)
        yield from (Question(int(n), PICK) for n in opinion.numbers if free(int(n)))
        yield from (Question(n, PICK) for n in range(len(self.photos)) if free(n))

    def _taken(self, number: int, tab: str) -> bool:
        now = self._clock()
        return any(
            held.number == number and other != tab and now - since < _LEASE_SECONDS
            for other, (held, since) in self._leases.items()
        )

    def _audit_order(self) -> list[int]:
        if self._drawn_from != len(self.photos):
            self._drawn_from = len(self.photos)
            self._drawn = sorted(range(self._drawn_from), key=lambda n: audit_order(self.photos.files[n].path))
        return self._drawn
