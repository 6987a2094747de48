"""What came out, in one sentence and a few numbers; where the truth is unknown it says so."""

from dataclasses import dataclass
from typing import Any

from protocon.report import collect, next_commands
from protocon.report.audit_estimate import COMBINED
from protocon.report.fair_sample import fair_sample, held_out_words
from protocon.report.figures import percent
from protocon.report.intervals import wilson_interval
from protocon.report.label_table import RunLabels
from protocon.report.outcome import MORE
from protocon.report.record import Record


@dataclass(frozen=True)
class Card:
    """One number with its meaning."""

    value: str
    name: str
    note: str = ""
    alarm: bool = False
    """Whether it asks for something to be done."""


@dataclass(frozen=True)
class Headline:
    """The top of a run's part."""

    status: str
    """Empty for a finished run, else how far it got."""
    sentence: str
    advice: str
    """What to do first; empty where the numbers ask for nothing."""
    caution: str
    """What the numbers do not say."""
    cards: tuple[Card, ...]


def headline(record: Record, table: RunLabels | None) -> Headline:
    """Result and how sure it is."""
    test = collect.tested(record)
    truth = table.accuracy("refined") if table is not None else None
    known = (
        _audit_card(record),
        _test_card(test),
        _truth_card(record, truth),
        *_triage_cards(record),
        _held_out_card(record),
        None if held_out(record) else _agreement_card(record, table),  # lay users take it for accuracy
    )
    cards = [card for card in known if card]
    sentence, caution = _words(record, test, truth is not None or _sees_truth(record))
    return Headline(_status(record), sentence, _advice(record), caution, tuple(cards))


def _advice(record: Record) -> str:
    """Where no label could be accepted, what would change that."""
    checked = held_out(record)
    if checked is None or (checked["threshold"] is not None and checked.get("conclusive", True)):
        return ""
    return MORE


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
    if record.metrics and "feature_spread" in record.metrics[-1]:
        return _pretrained_words(record)
    if test is not None:
        low_high = (percent(bound) for bound in test.interval or ())
        interval = f" (95 % interval {' to '.join(low_high)})" if test.interval else ""
        return (
            f"{record.method} labels {percent(test.mean)}{interval} of the test images right{given}.",
            _CHANCE if test.interval else _NO_INTERVAL,
        )
    if truth:
        return (
            f"There is no test set. The labels that {record.method} made{given} are compared with the classes that the "
            "data set knows and the run did not see.",
            "These are images that the run learnt from: new ones may fare worse.",
        )
    if audited(record):
        return _audit_words(record)
    known = f" The run had {labelled:,} labels." if labelled else ""
    if (checked := held_out(record)) is not None:
        fair = fair_sample(checked)
        low, high = fair.interval
        aside = f" {fair.aside}." if fair.listed else ""
        return (
            f"{held_out_words(checked, labelled, fair)}: {fair.found:,} predictions agree, "
            f"{percent(fair.share)} (95 % interval {100 * low:.0f} – {100 * high:.0f} %).{aside}",
            f"{_HELD_OUT} {_to_know_more(record)}",
        )
    second = collect.curve(record, "agreement") is not None
    return f"{_UNKNOWN}{known}", f"{_AGREEMENT if second else _CONFIDENCE} {_to_know_more(record)}"


def _pretrained_words(record: Record) -> tuple[str, str]:
    """Of an encoder that learnt without labels."""
    right, images = collect.curve(record, "knn_accuracy"), record.split.get("size", 0)
    known = "" if right is None else f" {percent(right.last)} of the images have nearest neighbours of their own class."
    return (
        f"{record.method} trained an encoder on {images:,} images without labels.{known}",
        f"The encoder is in {record.path}: protocon train --init takes it; with --frozen it is used as it is.",
    )


_UNKNOWN = (
    "How many labels are right is not known: there is no test set, and nobody has told the classes of the unlabelled "
    "images."
)
_AGREEMENT = (
    "What can be told is how often classifier and cluster agree. Agreement is not accuracy: both learn from the same "
    "few labels and can be wrong together."
)
_HELD_OUT = (
    "Expect about as many of the labels in labels.csv to be right, if your labels are of images like the others. "
    "They are no fair sample if you chose them: clear images make the figure too high, images from a list to look at "
    "make it too low, even while the labels get better."
)
_CONFIDENCE = (
    "This method has no second opinion to compare the classifier with, and confidence is not accuracy: a network can "
    "be sure and wrong."
)
_CHANCE = (
    "The interval covers the chance in the choice of test images (Wilson). Other labels, or another seed, move the "
    "result too, often by more: protocon compare measures that."
)
_NO_INTERVAL = "How many images the test set has is on record once the run is finished; the interval comes with it."


def _to_know_more(record: Record) -> str:
    return f"For a fair estimate, answer for 30 images drawn at random: {next_commands.audit(record)}"


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


def held_out(record: Record) -> dict[str, Any] | None:
    """What holding out labels showed, as result.json has it; None where it was not tried."""
    checked = record.result.get("cross_check")
    return checked if isinstance(checked, dict) and checked.get("held_out") else None


def audited(record: Record) -> bool:
    """Whether somebody answered for images drawn at random."""
    return bool(record.audit.get("images"))


def _audit_words(record: Record) -> tuple[str, str]:
    low, high = record.audit["interval"]
    return (
        f"About {percent(float(record.audit['accuracy']))} of the labels are right (95 % interval {100 * low:.0f} – "
        f"{100 * high:.0f} %), by a random audit of {record.audit['images']} images.",
        "The interval covers the chance in which images were drawn. It is for the images of this folder: others may "
        "fare worse.",
    )


def _audit_card(record: Record) -> Card | None:
    if not audited(record):
        return None
    low, high = record.audit["interval"]
    return Card(
        percent(float(record.audit["accuracy"])),
        "right, by random audit",
        f"95 % interval {100 * low:.0f} – {100 * high:.0f} %; {record.audit['right']} of {record.audit['images']} "
        f"answers agree ({COMBINED}); {record.audit['accepted_right']} of {record.audit['accepted']} accepted ones do",
    )


def _held_out_card(record: Record) -> Card | None:
    checked = held_out(record)
    if checked is None:
        return None
    fair = fair_sample(checked)
    low, high = fair.interval
    aside = f"; {fair.aside}" if fair.listed else ""
    return Card(
        percent(fair.share),
        "held-out labels agree",
        f"{fair.found:,} of {fair.total:,}, each held out of one of {checked['groups']} more runs; 95 % interval "
        f"{100 * low:.0f} – {100 * high:.0f} %; no fair sample if you chose them; each in cross_check.csv{aside}",
    )


def _accepted_right(record: Record) -> str:
    """How many of the accepted labels are right, as far as held-out labels tell."""
    checked = held_out(record)
    if checked is None:
        return "how many of them are right is not known"
    if checked["threshold"] is None:
        right, seen = checked["accepted_right_before"], checked["accepted_before"]
        return f"none, since of {seen} held-out labels with a sure prediction only {right} agreed"
    if not checked.get("conclusive", True):
        return "too few held-out labels have a sure prediction to accept any"
    if not checked["accepted"]:
        return "how many of them are right is not known: no held-out label has a sure prediction"
    return f"of {checked['accepted']} held-out labels that were as sure, {checked['accepted_right']} agreed"


def _agreement_card(record: Record, table: RunLabels | None) -> Card | None:
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
    unchecked = int(triage.get("unchecked") or 0)
    total = max(1, accepted + review + unchecked)
    precision, checked = triage.get("accept_precision"), int(triage.get("accept_checked") or 0)
    if precision is None:
        right = _accepted_right(record)
    else:
        low, high = wilson_interval(float(precision), checked)
        right = f"{percent(float(precision))} of them are right (95 % interval {100 * low:.1f} – {percent(high)})"
    finds = triage.get("review_finds")
    found = "" if finds is None else f"; {percent(float(finds))} of all wrong labels are among them"
    cards = []
    if doubted := int(triage.get("doubted_labels") or 0):
        name = f"of your labels look{'s' if doubted == 1 else ''} wrong"
        cards.append(Card(f"{doubted:,}", name, "shown first, below", alarm=True))
    cards.append(
        Card(f"{accepted:,}", "labels accepted", f"{percent(accepted / total)} of {total:,} unlabelled images; {right}")
    )
    if unchecked:
        cards.append(Card(f"{unchecked:,}", "sure, but unchecked", "nothing tells how many of them are right"))
    cards.append(Card(f"{review:,}", "to look at", f"unsure or disputed, the most doubtful first{found}"))
    return cards
