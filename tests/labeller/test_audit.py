"""The audit's interval, and what the model thinks, on made-up features whose truth is known."""

import numpy as np
import pytest

from protocon.labeller.audit_stream import Audit, audit_order, due
from protocon.labeller.opinion import Known, ModelOpinion, Thinker
from protocon.labeller.second_thoughts import doubted_labels
from protocon.labeller.stopping import advice

CLASSES = 4


def folder(seed: int, images: int, *, noise: float) -> tuple[np.ndarray, np.ndarray]:
    """Features of overlapping classes of unlike sizes, and the truth."""
    rng = np.random.default_rng(seed)
    truth = rng.choice(CLASSES, images, p=[0.45, 0.3, 0.15, 0.1])
    centres = rng.normal(size=(CLASSES, 24))
    return (centres[truth] + noise * rng.normal(size=(images, 24))).astype(np.float32), truth


def simulate(seed: int, *, images: int = 240, answers: int = 80) -> tuple[ModelOpinion, np.ndarray, np.ndarray]:
    """Label as the page does: every fifth image drawn at random, the others picked, a round after every twentieth."""
    features, truth = folder(seed, images, noise=2.8)
    thinker = Thinker()
    thinker.add(np.arange(images), features)
    numbers = thinker.prepare()
    labels, audited = np.full(images, -1), np.zeros(images, dtype=bool)
    order = sorted(range(images), key=lambda n: audit_order(f"{seed}-{n}"))

    def known(count: int) -> Known:
        return Known(tuple(f"c{c}" for c in range(CLASSES)), labels.copy(), audited.copy(), labels >= 0, count, count)

    opinion = thinker.think(numbers, known(0))
    for count in range(answers):
        if due(count, int(audited.sum())):
            chosen = next(n for n in order if labels[n] < 0)
            audited[chosen] = True
        else:
            chosen = next(pick.index for pick in opinion.picks if labels[pick.index] < 0)
        labels[chosen] = truth[chosen]
        if count % 20 == 19:
            opinion = thinker.think(numbers, known(count + 1))
    return opinion, truth, labels


def test_the_interval_covers_the_truth_in_nine_of_ten_labellings() -> None:
    covered, shares = 0, []
    for seed in range(100):
        opinion, truth, labels = simulate(seed)
        open_ones = (labels < 0) | opinion.known.audited
        share = float((opinion.fair == truth)[open_ones].mean())
        low, high = opinion.audit.interval
        assert opinion.audit.asked == 16
        covered += low <= share <= high
        shares.append(share)
    assert covered >= 90
    assert 0.5 < np.mean(shares) < 0.95  # neither trivial nor hopeless


def test_audited_answers_change_neither_what_is_measured_nor_what_is_picked() -> None:
    features, truth = folder(3, 200, noise=1.0)
    thinker = Thinker()
    thinker.add(np.arange(200), features)
    numbers = thinker.prepare()
    labels = np.where(np.arange(200) % 10 == 0, truth, -1)
    audited = np.arange(200) % 20 == 0
    names = tuple("abcd")
    opinions = []
    for wrong in (False, True):
        given = np.where(audited & (labels >= 0) & wrong, (labels + 1) % CLASSES, labels)
        opinions.append(thinker.think(numbers, Known(names, given, audited, labels >= 0, 20, 20)))
    one, two = opinions
    np.testing.assert_array_equal(one.fair, two.fair)
    assert one.picks == two.picks
    assert one.audit.right != two.audit.right
    assert (thinker.complete(one).probs != thinker.complete(two).probs).any()


def test_every_fifth_question_is_an_audit() -> None:
    audits, places = 0, []
    for question in range(30):
        if due(question, audits):
            audits += 1
            places.append(question + 1)
    assert places == [5, 10, 15, 20, 25, 30]


def test_nothing_audited_says_nothing() -> None:
    assert Audit().interval == (0.0, 1.0)
    assert Audit().facts()["share"] is None


def test_labels_that_look_wrong_are_the_planted_ones() -> None:
    features, truth = folder(5, 120, noise=0.5)
    labels = np.where(np.arange(120) < 60, truth, -1)
    planted = [3, 20, 41]
    labels[planted] = (labels[planted] + 1) % CLASSES
    found = doubted_labels(features, labels)
    assert {row for row, _ in found[:3]} == set(planted)
    assert all(better == truth[row] for row, better in found[:3])
    assert doubted_labels(features, np.full(120, -1)) == ()


@pytest.mark.parametrize(("answers", "level"), [(4, "go"), (150, "stop")])
def test_it_says_when_to_stop(answers: int, level: str) -> None:
    features, truth = folder(7, 400, noise=0.15)
    thinker = Thinker()
    thinker.add(np.arange(400), features)
    numbers = thinker.prepare()
    for count in (answers // 2, answers):
        chosen = np.arange(400) < count
        audited = chosen & (np.arange(400) % 3 == 0)
        known = Known(tuple("abcd"), np.where(chosen, truth, -1), audited, chosen, count, count)
        opinion = thinker.think(numbers, known)
    said = advice(opinion, finished=True)
    assert said["level"] == level
    assert all(sign["met"] for sign in said["signs"]) == (level == "stop")
    assert advice(opinion, finished=False)["level"] != "stop"
