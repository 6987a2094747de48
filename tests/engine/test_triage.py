"""Which labels are taken and which are looked at, in which order, and how good that is."""

import numpy as np
import pytest

from protocon.engine.labelling.held_out import MIN_CASES, HeldOutLabels
from protocon.engine.labelling.triage import NONE, Judgement, Opinion, measure, sort_images, threshold_for_new


def opinion(labels: list[int], confidence: list[float] | None = None) -> Opinion:
    scores = confidence or [0.0 if label == NONE else 0.99 for label in labels]
    return Opinion(np.array(labels, dtype=np.int32), np.array(scores, dtype=np.float32))


def judgement(
    *,
    refined: Opinion,
    classifier: Opinion,
    cluster: list[int] | None = None,
    prototype: list[int] | None = None,
    given: list[int] | None = None,
    truth: list[int] | None = None,
) -> Judgement:
    nothing = [NONE] * len(refined.label)
    return Judgement(
        refined=refined,
        classifier=classifier,
        cluster=opinion(cluster or nothing),
        prototype=opinion(prototype or nothing),
        given=np.array(given or nothing, dtype=np.int32),
        truth=np.array(truth or nothing, dtype=np.int32),
    )


def held_out(
    position: list[int], given: list[int], found: list[int], confidence: list[float] | None = None
) -> HeldOutLabels:
    return HeldOutLabels(
        groups=4,
        position=np.array(position, dtype=np.int64),
        given=np.array(given),
        found=np.array(found),
        confidence=np.array(confidence or [0.99] * len(given)),
        undisputed=np.ones(len(given), dtype=bool),
        left_out=0,
    )


class _Trusted(HeldOutLabels):
    """Held-out labels of other images, all predicted as given: sure labels are right."""

    def trusted_from(self, threshold: float) -> float:
        return threshold

    def conclusive(self, threshold: float) -> bool:  # noqa: ARG002
        return True


_NOBODY = np.zeros(0, dtype=np.int64)
CHECK = _Trusted(4, _NOBODY, _NOBODY, _NOBODY, np.zeros(0), np.zeros(0, dtype=bool), 0)


def test_only_sure_and_undisputed_labels_are_accepted() -> None:
    judged = judgement(
        refined=opinion([0, 0, 0, 0, 0], [0.96, 0.94, 0.96, 0.96, 0.95]),
        classifier=opinion([0, 0, 1, 0, 0]),
        cluster=[0, 0, 0, 1, 0],
        prototype=[0, 0, 0, 0, 1],
    )
    triage = sort_images(judged, 0.95, held_out=CHECK)
    assert triage.accept.tolist() == [True, False, False, False, False]


def test_an_opinion_that_a_method_lacks_disputes_nothing() -> None:
    judged = judgement(refined=opinion([0, 1], [0.99, 0.95]), classifier=opinion([0, 1]))
    assert sort_images(judged, 0.95, held_out=CHECK).accept.tolist() == [True, True]


def test_first_labels_that_may_be_wrong_then_what_most_opinions_dispute_then_the_least_sure() -> None:
    judged = judgement(
        refined=opinion([0, 0, 0, 1, 1, 1], [0.5, 0.99, 0.3, 0.0, 0.0, 0.5]),
        classifier=opinion([0, 0, 0, 0, 0, 0], [0.5, 0.99, 0.3, 0.97, 0.99, 0.5]),
        given=[NONE, NONE, NONE, 1, 1, NONE],
    )
    triage = sort_images(judged, 0.95, held_out=CHECK)
    assert triage.accept.tolist() == [False, True, False, False, False, False]
    # 4 and 3: labels that may be wrong; 5: the classifier differs; 2 and 0: merely unsure
    assert np.argsort(triage.rank)[1:].tolist() == [4, 3, 5, 2, 0]


@pytest.mark.parametrize(
    ("classifier", "confidence", "prototype", "doubted"),
    [(0, 0.99, 0, True), (0, 0.94, 0, False), (0, 0.99, 1, False), (1, 0.99, 0, False)],
)
def test_a_given_label_is_doubted_only_if_classifier_and_prototype_both_contradict_it(
    classifier: int, confidence: float, prototype: int, doubted: bool
) -> None:
    judged = judgement(
        refined=opinion([1], [0.0]), classifier=opinion([classifier], [confidence]), prototype=[prototype], given=[1]
    )
    assert bool(sort_images(judged, 0.95).accept[0]) is not doubted


def test_precision_of_what_was_accepted_is_measured_against_the_truth() -> None:
    judged = judgement(
        refined=opinion([0, 1, 0, 1, 1], [0.99, 0.99, 0.99, 0.5, 0.0]),
        classifier=opinion([0, 1, 0, 1, 0]),
        given=[NONE, NONE, NONE, NONE, 1],
        truth=[0, 0, NONE, 0, NONE],
    )
    measured = measure(judged, sort_images(judged, 0.95))
    assert (measured["accepted"], measured["review"], measured["doubted_labels"]) == (3, 1, 1)
    assert (measured["accept_checked"], measured["accept_precision"]) == (2, 0.5)  # of 3 accepted, 2 have a truth
    assert measured["review_finds"] == 0.5  # two labels are wrong, one of them is in the list


def test_a_new_image_must_be_as_sure_as_those_whose_labels_were_accepted() -> None:
    """The classifier is surer of everything than the labels are, as heads on a frozen encoder are."""
    levels = np.linspace(0.5, 0.99, 50)
    judged = judgement(
        refined=opinion([0] * 50, list(levels - 0.2)), classifier=opinion([0] * 50, list(0.9 + levels / 10))
    )
    sorted_out = sort_images(judged, 0.6, held_out=CHECK)
    assert sorted_out.accept.sum() == 20  # from 0.8 on
    fair = threshold_for_new(judged, sorted_out)
    reached = judged.classifier.confidence >= np.float32(fair)
    assert sorted_out.accept[reached].mean() >= 0.9
    assert reached.sum() == 22  # two more would be fewer than nine in ten
    assert measure(judged, sorted_out)["threshold_for_new"] == fair > 0.97
    nobody = sort_images(judged, 0.8, held_out=CHECK)
    assert measure(judged, nobody)["threshold_for_new"] is None


def test_where_the_classifier_is_what_was_checked_a_new_image_needs_the_same_confidence() -> None:
    sure = opinion([0] * 40, [0.96] * 30 + [0.5] * 10)
    judged = judgement(refined=sure, classifier=sure)
    assert threshold_for_new(judged, sort_images(judged, 0.95, held_out=CHECK)) == pytest.approx(0.96)
    none_below = judgement(refined=opinion([0] * 40), classifier=opinion([0] * 40, [0.9] * 40))
    assert threshold_for_new(none_below, sort_images(none_below, 0.95, held_out=CHECK)) == 0.95


def test_nothing_is_claimed_where_the_truth_is_unknown() -> None:
    judged = judgement(refined=opinion([0, 1]), classifier=opinion([0, 1]))
    measured = measure(judged, sort_images(judged, 0.95))
    assert (measured["accepted"], measured["unchecked"], measured["review"]) == (0, 2, 0)
    assert measured["accept_precision"] is None
    assert measured["review_finds"] is None


def test_nothing_is_accepted_that_was_not_checked() -> None:
    judged = judgement(refined=opinion([0, 1, 0], [0.99, 0.99, 0.5]), classifier=opinion([0, 1, 0]))
    alone = sort_images(judged, 0.95)
    assert alone.words.tolist() == ["unchecked", "unchecked", "review"]
    assert alone.rank.tolist() == [0, 0, 1]
    count = MIN_CASES + 3
    labels = [0] * count
    judged = judgement(
        refined=opinion([0] * (count + 1), [0.0] * count + [0.99]),
        classifier=opinion([0] * (count + 1)),
        given=[*labels, NONE],
    )
    few = held_out(list(range(MIN_CASES - 1)), labels[: MIN_CASES - 1], labels[: MIN_CASES - 1])
    assert sort_images(judged, 0.95, held_out=few).words[-1] == "unchecked"
    enough = held_out(list(range(MIN_CASES)), labels[:MIN_CASES], labels[:MIN_CASES])
    assert sort_images(judged, 0.95, held_out=enough).words[-1] == "accept"


def test_a_given_label_looks_wrong_if_runs_without_it_are_sure_of_another_class() -> None:
    """The run itself has learnt the wrong label by heart: its own classifier says nothing."""
    given = [0] * 12 + [1] * 12
    judged = judgement(refined=opinion(given, [0.0] * 24), classifier=opinion(given, [0.99] * 24), given=given)
    found = given.copy()
    found[3], found[20], found[5] = 1, 0, 1
    confidence = [0.98] * 24
    confidence[3], confidence[20], confidence[5] = 0.997, 0.999, 0.6
    triage = sort_images(judged, 0.95, held_out=held_out(list(range(24)), given, found, confidence))
    assert np.flatnonzero(~triage.accept).tolist() == [3, 20]  # 5: another class, but not surely
    assert (triage.rank[20], triage.rank[3]) == (1, 2)
    assert triage.looks_like.label[[3, 20]].tolist() == [1, 0]
    assert measure(judged, triage)["doubted_labels"] == 2


def test_runs_that_are_often_wrong_blame_no_label() -> None:
    given = [0] * 20
    judged = judgement(refined=opinion(given, [0.0] * 20), classifier=opinion(given), given=given)
    found = [0] * 12 + [1] * 8
    triage = sort_images(judged, 0.95, held_out=held_out(list(range(20)), given, found))
    assert triage.accept.all()
