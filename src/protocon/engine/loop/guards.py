"""What goes wrong in training, noticed while it happens: each warning once when it begins, with what to try."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from protocon.engine.loop.collapse_rules import collapse_rules
from protocon.engine.loop.meter import Unchecked
from protocon.engine.loop.rule import Row, Rule, above, below
from protocon.errors import TrainingError

_SHOWN = 8


class Guards:
    """The rules' memory. Everything in it is in `state`, so a resumed run warns where an unbroken one would.

    Args:
        class_names: C names.
        clusters: K, where the method clusters.
        total_epochs: length of the run; patience grows with it.
        chance_loss: what a method loses that tells no image from another, where that is known.
    """

    def __init__(
        self,
        *,
        class_names: Sequence[str],
        clusters: int | None,
        total_epochs: int,
        chance_loss: float | None = None,
    ) -> None:
        self._names = tuple(class_names)
        self._patience = min(50, max(5, math.ceil(total_epochs / 20)))
        self._rules = (*_rules(clusters, self._patience, total_epochs), *collapse_rules(chance_loss))
        self._bad: dict[str, int] = {}
        self._good: dict[str, int] = {}
        self._warned: set[str] = set()
        self._unseen = [0] * len(self._names)

    def check(self, row: Row, labels_by_class: Sequence[int]) -> list[dict[str, Any]]:
        """Warnings that begin with this epoch, as rows of warnings.jsonl."""
        epoch = int(row["epoch"])
        found = []
        for rule in self._rules:
            message = rule.holds(row) if epoch >= rule.first_epoch else None
            if self._begins(rule.kind, message is not None, rule.patience):
                text = f"{message}, for {rule.patience} epochs now" if rule.patience > 1 else str(message)
                found.append({"epoch": epoch, "kind": rule.kind, "message": text, "advice": rule.advice})
        if labels_by_class and epoch >= 1:
            found += self._missing_classes(epoch, labels_by_class)
        return found

    def _begins(self, kind: str, bad: bool, patience: int) -> bool:
        """Count epochs in a row; a symptom that was warned of must stay away as long before it counts as new."""
        self._bad[kind] = self._bad.get(kind, 0) + 1 if bad else 0
        self._good[kind] = 0 if bad else self._good.get(kind, 0) + 1
        if self._good[kind] >= patience:
            self._warned.discard(kind)
        if self._bad[kind] < patience or kind in self._warned:
            return False
        self._warned.add(kind)
        return True

    def _missing_classes(self, epoch: int, counts: Sequence[int]) -> list[dict[str, Any]]:
        self._unseen = [0 if count else before + 1 for before, count in zip(self._unseen, counts, strict=True)]
        missing = [name for name, epochs in zip(self._names, self._unseen, strict=True) if epochs >= self._patience]
        if not self._begins("missing_classes", bool(missing), 1):
            return []
        shown = ", ".join(missing[:_SHOWN]) + (f" and {len(missing) - _SHOWN} more" if len(missing) > _SHOWN else "")
        message = f"no image has had the pseudo-label {shown}, for {self._patience} epochs now"
        advice = "check the labels of these classes (a misspelt name is a class of its own), and add some"
        return [{"epoch": epoch, "kind": "missing_classes", "message": message, "advice": advice}]

    def state(self) -> dict[str, Any]:
        """What a checkpoint must hold, as JSON."""
        return {"bad": self._bad, "good": self._good, "warned": sorted(self._warned), "unseen": self._unseen}

    def load(self, state: Mapping[str, Any]) -> None:
        """Continue from a state."""
        self._bad, self._good = dict(state["bad"]), dict(state["good"])
        self._warned, self._unseen = set(state["warned"]), list(state["unseen"])


def _rules(clusters: int | None, patience: int, total_epochs: int) -> tuple[Rule, ...]:
    settled = max(2, total_epochs // 5)
    rules = [
        Rule(
            "no_pseudo_labels",
            below("retention", 0.01, "only {:.1%} of the images have a pseudo-label above the threshold"),
            "lower method.threshold, label more images, or train longer; if the training loss does not fall either, "
            "raise optim.lr",
            first_epoch=1,
            patience=patience,
        ),
        Rule(
            "one_class",
            above("largest_class_share", 0.95, "{:.1%} of all pseudo-labels are one class"),
            "if the data is not that one-sided, training has collapsed: lower optim.lr, use distribution alignment "
            "(fixmatch-da, or protocon with method.alignment=dual), and check that labels.csv is right",
            first_epoch=1,
            patience=3,
        ),
        Rule(
            "prototypes_alike",
            above("prototype_similarity", 0.9, "class prototypes are nearly the same (mean cosine {:.2f})"),
            "the projector has collapsed: set network.projector_norm=true, lower method.lambda_c or optim.lr",
            first_epoch=2,
            patience=patience,
        ),
        Rule(
            "disagreement",
            below("agreement", 0.3, "classifier and clusters agree on only {:.1%} of the images"),
            "clusters do not follow classes: train longer, lower method.neighbours, or raise method.alpha to "
            "trust the classifier more",
            first_epoch=settled,
            patience=patience,
        ),
    ]
    if clusters:
        share = 0.75
        few = "only {:.0f} of " + str(clusters) + " clusters have members"
        rules.append(
            Rule(
                "few_clusters",
                below("clusters_in_use", share * clusters, few),
                "raise method.size_ratio (0.9 keeps clusters alive) or method.dual_rate",
                first_epoch=2,
                patience=3,
            )
        )
    return tuple(rules)


def not_finite(seen: Unchecked, bad: Sequence[str], *, epoch: int, labelled: str, unlabelled: str) -> TrainingError:
    """The error for a step whose loss is no longer a number: which term, where, and on which images.

    Args:
        seen: the step's terms, and which rows it had.
        bad: names of the terms that are not finite.
        epoch: from 0.
        labelled: names of the labelled images of the step.
        unlabelled: names of the unlabelled ones.
    """
    values = ", ".join(f"{name} = {float(seen.terms[name])}" for name in bad)
    only_labels = set(bad) <= {"loss_x"}
    kinds = [f"labelled {labelled}"] if labelled else []
    images = "; ".join(kinds if only_labels else [*kinds, f"unlabelled {unlabelled}"])
    return TrainingError(
        f"training stopped: {values} in step {seen.number} of epoch {epoch}, on images: {images}. "
        "The last checkpoint is whole and has none of it. Look at these images; try a lower optim.lr, "
        "or run.precision=32-true"
    )


def stopped_row(epoch: int, error: TrainingError) -> dict[str, Any]:
    """The row of warnings.jsonl for training that had to stop."""
    message, _, advice = str(error).partition(". ")
    return {"epoch": epoch, "kind": "stopped", "message": message, "advice": advice}


def some_ids(ids: Sequence[str]) -> str:
    """The first few ids of a batch."""
    more = f" and {len(ids) - _SHOWN} more" if len(ids) > _SHOWN else ""
    return ", ".join(ids[:_SHOWN]) + more
