"""The desk as the page sees it: plain values, names as data, images by number."""

from typing import Any

from protocon.data.labels.answers import AUDIT, Entry
from protocon.errors import DataError
from protocon.labeller import browse
from protocon.labeller.desk import Desk
from protocon.labeller.full_run import FullRun
from protocon.labeller.stopping import advice
from protocon.labeller.stream import Question

_HISTORY = 60
_RANKED = 5


class Show:
    """What is shown of a desk.

    Args:
        desk: whose.
        full_run: its state is part of the status.
    """

    def __init__(self, desk: Desk, full_run: FullRun) -> None:
        self.desk = desk
        self.full_run = full_run

    def question(self, tab: str) -> dict[str, Any]:
        """The next question; `next` is None while the first features are awaited, and when nothing is left."""
        desk = self.desk
        waiting = not len(desk.opinion.numbers) and desk.trouble is None
        question = None if waiting else desk.next(tab)
        if question is None:
            return {"next": None, "waiting": waiting, "ahead": []}
        ahead = desk.ahead(tab, question.number)
        return {
            "next": self._asked(question),
            "waiting": False,
            "ahead": [{"number": number, "stamp": desk.photos.stamp(number)} for number in ahead],
        }

    def again(self, undone: Entry | None) -> dict[str, Any]:
        """The image of an undone answer, to be asked about again."""
        if undone is None or len(undone.images) != 1:
            return {"next": None}
        number = self.desk.place(undone.images[0])
        if number is None:
            return {"next": None}
        return {"next": self._asked(Question(number, undone.why if undone.why == AUDIT else "pick"))}

    def _asked(self, question: Question) -> dict[str, Any]:
        shown = self.item(question.number) | {
            "why": question.why,
            "reason": question.reason,
            "stands_for": question.stands_for,
        }
        if question.why == AUDIT:
            shown["ranking"] = shown["neighbours"] = []  # whoever knows what the model says is no fair judge of it
        return shown

    def item(self, number: int) -> dict[str, Any]:
        """An image, with its nearest labelled neighbours and the likeliest classes."""
        photos, desk = self.desk.photos, self.desk
        if not 0 <= number < len(photos):
            raise DataError(f"there is no image number {number}; expected 0 to {len(photos) - 1}.")
        answer = desk.closed().get(number)
        return {
            "number": number,
            "stamp": photos.stamp(number),
            "name": photos.files[number].path,
            "answer": None if answer is None else {"do": answer.do, "class_id": answer.class_id},
            "why": "review",
            "ranking": [{"class_id": c, "share": p} for c, p in browse.ranking(desk, number)[:_RANKED]],
            "neighbours": [
                {"number": n, "class_id": c, "stamp": photos.stamp(n)} for n, c in browse.neighbours(desk, number)
            ],
        }

    def shown(self, image: browse.Shown) -> dict[str, Any]:
        """An image of a list."""
        answer = self.desk.closed().get(image.number)
        return {
            "number": image.number,
            "stamp": self.desk.photos.stamp(image.number),
            "name": self.desk.photos.files[image.number].path,
            "guess": image.guess,
            "sure": image.sure,
            "label": answer.class_id if answer is not None and answer.do == "label" else "",
            "none": answer is not None and answer.do == "none",
            "better": browse.better(self.desk, image.number),
        }

    def groups(self, *, class_id: str, count: int, skip: int) -> list[dict[str, Any]]:
        """Look-alikes.

        Args:
            class_id: only those predicted to be of this class; empty for all.
            count: how many groups at most.
            skip: how many to pass over, for further pages.
        """
        found = browse.groups(self.desk, count=count, class_id=class_id, skip=skip)
        return [{"class_id": g.class_id, "images": [self.shown(image) for image in g.images]} for g in found]

    def classes(self) -> list[dict[str, Any]]:
        """Id, name, number of labels, estimated share of all images."""
        desk, opinion = self.desk, self.desk.opinion
        counts: dict[str, int] = {}
        for class_id in desk.labelled().values():
            counts[class_id] = counts.get(class_id, 0) + 1
        shares = dict(zip(opinion.known.classes, opinion.frequencies.tolist(), strict=False))
        return [
            {"id": class_id, "name": name, "labels": counts.get(class_id, 0), "share": shares.get(class_id)}
            for class_id, name in desk.answers.classes.items()
        ]

    def status(self) -> dict[str, Any]:
        """The bar at the top, and all that changes by itself."""
        desk, opinion = self.desk, self.desk.opinion
        total = len(desk.photos) - len(desk.photos.gone)
        closed = desk.closed().values()
        taken_in = len(opinion.numbers) - sum(number in opinion.rows for number in desk.photos.gone)
        finished = desk.features_done >= total and taken_in >= total
        return {
            "folder": desk.photos.root.name,
            "images": total,
            "features": min(desk.features_done, total),
            "labels": sum(a.do == "label" for a in closed),
            "none": sum(a.do == "none" for a in closed),
            "skipped": sum(a.do == "skip" for a in closed),
            "classes": self.classes(),
            "round": opinion.round,
            "learning": opinion.known.version != desk.version,
            "whole": finished and opinion.whole and opinion.known.version == desk.version,
            "coverage": opinion.coverage,
            "unsure": opinion.unsure,
            "agreement": opinion.agreement,
            "audit": opinion.audit.facts(),
            "doubted": len(opinion.doubted),
            "advice": advice(opinion, finished=finished),
            "trouble": desk.trouble,
            "remarks": [*desk.remarks, *desk.photos.problems][-20:],
            "run": self.run(),
        }

    def run(self) -> dict[str, Any]:
        """The full run."""
        return self.full_run.status()

    def history(self) -> list[dict[str, Any]]:
        """The latest lines that count, the newest first."""
        return [self.entry(entry) for entry in reversed(self.desk.answers.counting[-_HISTORY:])]

    def entry(self, entry: Entry) -> dict[str, Any]:
        """A line of the log."""
        classes = self.desk.answers.classes
        first = self.desk.place(entry.images[0]) if len(entry.images) == 1 else None
        return {
            "key": entry.key,
            "at": entry.at,
            "who": entry.who,
            "do": entry.do,
            "count": len(entry.images),
            "number": first,
            "name": entry.name or classes.get(entry.class_id, ""),
            "into": classes.get(entry.into, ""),
            "why": entry.why,
        }
