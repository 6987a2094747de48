"""What came out, in one sentence and a few numbers; where the truth is unknown it says so."""

from dataclasses import dataclass
from typing import Any

from protocon.report import collect
from protocon.report.figures import percent
from protocon.report.intervals import wilson_interval
from protocon.report.label_table import LabelTable
from protocon.report.record import Record


@dataclass(frozen=True)
class Card:
    """One number with its meaning."""

    value: str
    name: str
    note: str = ""


@dataclass(frozen=True)
class Headline:
    """The top of a run's part."""

    status: str
    """Empty for a finished run, else how far it got."""
    sentence: str
    caution: str
    """What the numbers do not say."""
    cards: tuple[Card, ...]


def headline(record: Record, table: LabelTable | None) -> Headline:
    """Result and how sure it is."""
    test = collect.tested(record)
    truth = table.accuracy("refined") if table is not None else None
    known = (_test_card(test), _truth_card(record, truth), _hidden_card(record), _agreement_card(record, table))
    cards = [card for card in known if card]
    cards += _triage_cards(record)
    return Headline(_status(record), *_words(record, test, truth is not None or _sees_truth(record)), tuple(cards))


def _sees_truth(record: Record) -> bool:
    return collect.curve(record, "pseudo_accuracy_refined") is not None


def _status(record: Record) -> str:
    if record.finished:
        return ""
    wanted = record.setting("optim", "epochs")
    of = f" of {wanted}" if isinstance(wanted, int) else ""
    done = f"{len(record.metrics)}{of} epochs are done"
    return f"Unfinished: {done}. What follows is what is known so far; labels, clusters and images come at the end."


def _words(record: Record, test: collect.Tested | None, truth: bool) -> tuple[str, str]:
    """The sentence and the caution."""
    labelled = record.split.get("labelled")
    given = f" from {labelled:,} labels" if labelled else ""
    if test is not None:
        low_high = (percent(bound) for bound in test.interval or ())
        interval = f" (95 % interval {' to '.join(low_high)})" if test.interval else ""
        return (
            f"{record.method} labels {percent(test.mean)}{interval} of the test images right{given}.",
            _CHANCE if test.interval else _NO_INTERVAL,
        )
    if truth:
        return (
            f"There is no test set. The labels that {record.method} made{given} are held against the classes that the "
            "data set knows and the run did not see.",
            "These are images that the run learnt from: new ones may fare worse.",
        )
    known = f" The run had {labelled:,} labels." if labelled else ""
    if (checked := hidden_labels(record)) is not None:
        found, hidden = checked["found"], checked["hidden"]
        low, high = wilson_interval(found / hidden, hidden)
        return (
            f"{_UNKNOWN}{known} Hidden in turn, {found:,} of {hidden:,} were found again: {percent(found / hidden)} "
            f"(95 % interval {100 * low:.0f} – {100 * high:.0f} %).",
            f"{_HIDDEN} {_TO_KNOW_MORE}",
        )
    second = collect.curve(record, "agreement") is not None
    return f"{_UNKNOWN}{known}", f"{_AGREEMENT if second else _CONFIDENCE} {_TO_KNOW_MORE}"


_UNKNOWN = (
    "How many labels are right is not known: there is no test set, and nobody has told the classes of the unlabelled "
    "images."
)
_AGREEMENT = (
    "What can be told is how often classifier and cluster agree. Agreement is not accuracy: both learn from the same "
    "few labels and can be wrong together."
)
_HIDDEN = (
    "So many labels in labels.csv may be expected to be right, if the labelled images are like the others. Images that "
    "people choose to label are often clearer than the rest; on the other hand, the run itself had all of the labels."
)
_CONFIDENCE = (
    "This method has no second opinion to compare the classifier with, and confidence is not accuracy: a network can "
    "be sure and wrong."
)
_TO_KNOW_MORE = "To know more, label some images and hold them out (data.test_fraction), or look at those below."
_CHANCE = (
    "The interval covers the chance in the choice of test images (Wilson). Other labels, or another seed, move the "
    "result too, often by more: protocon compare measures that."
)
_NO_INTERVAL = "How many images the test set has is on record once the run is finished; the interval comes with it."


def _test_card(test: collect.Tested | None) -> Card | None:
    if test is None:
        return None
    last = f"mean of the last {test.epochs} epochs" if test.epochs > 1 else "last evaluated epoch"
    if test.interval is None:
        return Card(percent(test.mean), "test accuracy", f"averaged weights, {last}")
    low, high = test.interval
    note = f"95 % interval {100 * low:.1f} – {percent(high)}, {test.images:,} images; averaged weights, {last}"
    return Card(percent(test.mean), "test accuracy", note)


def _truth_card(record: Record, truth: tuple[float, int] | None) -> Card | None:
    if truth is not None:
        return Card(percent(truth[0]), "pseudo-labels right", f"refined labels of {truth[1]:,} unlabelled images")
    seen = collect.curve(record, "pseudo_accuracy_refined")
    return None if seen is None else Card(percent(seen.last), "pseudo-labels right", "in the newest epoch")


def hidden_labels(record: Record) -> dict[str, Any] | None:
    """What hiding labels showed, as result.json has it; None where it was not tried."""
    checked = record.result.get("cross_check")
    return checked if isinstance(checked, dict) and checked.get("hidden") else None


def _hidden_card(record: Record) -> Card | None:
    checked = hidden_labels(record)
    if checked is None:
        return None
    found, hidden = int(checked["found"]), int(checked["hidden"])
    low, high = wilson_interval(found / hidden, hidden)
    return Card(
        percent(found / hidden),
        "hidden labels found",
        f"{found:,} of {hidden:,}, each hidden from one of {checked['groups']} more runs; 95 % interval "
        f"{100 * low:.0f} – {100 * high:.0f} %; each in cross_check.csv",
    )


def _accepted_right(record: Record) -> str:
    """How many of the accepted labels are right, as far as hidden labels tell."""
    checked = hidden_labels(record)
    if checked is None:
        return "how many of them are right is not known"
    if checked["threshold"] is None:
        right, seen = checked["accepted_right_before"], checked["accepted_before"]
        return f"none, since of {seen} hidden labels that were surely found only {right} were right"
    if not checked["accepted"]:
        return "how many of them are right is not known: no hidden label was found surely enough"
    return f"of {checked['accepted']} hidden labels that were as sure, {checked['accepted_right']} were right"


def _agreement_card(record: Record, table: LabelTable | None) -> Card | None:
    now = table.agreement() if table is not None else None
    if now is not None:
        return Card(percent(now), "agreement", "classifier and cluster say the same of an unlabelled image")
    seen = collect.curve(record, "agreement")
    return None if seen is None else Card(percent(seen.last), "agreement", "of classifier and cluster, newest epoch")


def _triage_cards(record: Record) -> list[Card]:
    triage = record.result.get("triage")
    if not isinstance(triage, dict):
        return []
    accepted, review = int(triage["accepted"]), int(triage["review"])
    total = max(1, accepted + review)
    precision, checked = triage.get("accept_precision"), int(triage.get("accept_checked") or 0)
    if precision is None:
        right = _accepted_right(record)
    else:
        low, high = wilson_interval(float(precision), checked)
        right = f"{percent(float(precision))} of them are right (95 % interval {100 * low:.1f} – {percent(high)})"
    finds = triage.get("review_finds")
    found = "" if finds is None else f"; {percent(float(finds))} of all wrong labels are among them"
    cards = [
        Card(
            percent(accepted / total), "accepted", f"{accepted:,} of {accepted + review:,} unlabelled images; {right}"
        ),
        Card(f"{review:,}", "to look at", f"unsure or disputed, the most doubtful first in labels.csv{found}"),
    ]
    if triage.get("doubted_labels"):
        cards.append(
            Card(f"{triage['doubted_labels']:,}", "labels in doubt", "given labels that look like another class")
        )
    return cards
