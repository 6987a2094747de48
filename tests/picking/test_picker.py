"""The picker covers what there is, repeats nothing, and depends on its inputs alone."""

import time

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from protocon.core.neighbours import unit_rows
from protocon.errors import DataError
from protocon.picking.coverage import Coverage
from protocon.picking.demand import FLOOR, TRUST, demand
from protocon.picking.fast_model import FastModel
from protocon.picking.picker import Pick, Picker
from protocon.picking.shaped import seen_by_labels
from tests.picking.blobs import blobs

SIZES = (60, 30, 20, 10, 8)


def indices(picker: Picker, n: int, labels: np.ndarray | None = None, probs: np.ndarray | None = None) -> list[int]:
    return [pick.index for pick in picker.next(n, labels, probs)]


def labelled(groups: np.ndarray, chosen: list[int]) -> np.ndarray:
    labels = np.full(len(groups), -1)
    labels[chosen] = groups[chosen]
    return labels


def test_as_many_picks_as_groups_find_every_group_and_tell_their_sizes() -> None:
    features, groups = blobs(SIZES)
    picks = Picker(features).next(len(SIZES))
    assert {int(groups[pick.index]) for pick in picks} == set(range(len(SIZES)))
    for pick in picks:
        assert pick.stands_for == SIZES[groups[pick.index]]
        assert f"{pick.stands_for - 1} other" in pick.reason


def test_the_smallest_group_comes_last() -> None:
    features, groups = blobs((100, 10, 90))
    found = list(dict.fromkeys(int(groups[i]) for i in indices(Picker(features), 12)))
    assert sorted(found) == [0, 1, 2]
    assert found[-1] == 1


def test_a_longer_list_begins_with_the_shorter_one() -> None:
    features, _ = blobs(SIZES)
    assert indices(Picker(features), 20)[:7] == indices(Picker(features), 7)


def test_one_at_a_time_gives_the_same_images_as_all_at_once() -> None:
    features, groups = blobs(SIZES, spread=0.6)
    together = indices(Picker(features), 12)
    picker, chosen = Picker(features), list[int]()
    for _ in together:
        chosen += indices(picker, 1, labelled(groups, chosen))
    assert chosen == together


def test_answers_do_not_depend_on_what_was_asked_before() -> None:
    features, groups = blobs(SIZES, spread=0.6)
    used = Picker(features)
    used.next(9)
    used.next(3, labelled(groups, [1, 2, 3, 50]))
    labels = labelled(groups, [0, 7])
    assert used.next(8, labels) == Picker(features).next(8, labels)


def test_features_in_chunks_give_the_same_picks_as_all_at_once() -> None:
    features, _ = blobs(SIZES)
    picker = Picker(features[:50])
    assert max(indices(picker, 50)) < 50
    picker.add(features[50:51])
    picker.add(features[51:])
    assert len(picker) == len(features)
    assert picker.next(10) == Picker(features).next(10)


def test_labelled_and_skipped_images_are_never_picked_again() -> None:
    features, groups = blobs(SIZES)
    first = indices(Picker(features), 10)
    labels = labelled(groups, first)
    second = Picker(features).next(200, labels, skip=[3, 4])
    found = [pick.index for pick in second]
    assert len(found) == len(set(found)) == len(features) - len(set(first) | {3, 4})
    assert not set(found) & (set(first) | {3, 4})


def test_labels_move_picks_to_groups_without_one() -> None:
    features, groups = blobs((60, 60))
    where = np.flatnonzero(groups == 0)[:3]
    pick = Picker(features).next(1, labelled(groups, where.tolist()))[0]
    assert groups[pick.index] == 1


def test_the_model_s_doubt_draws_picks() -> None:
    features, groups = blobs((60, 60, 60))
    chosen = [int(np.flatnonzero(groups == group)[0]) for group in range(3)]
    labels = labelled(groups, chosen)
    probs = np.eye(3)[groups]
    probs[groups == 1] = (0.34, 0.36, 0.30)
    pick = Picker(features).next(1, labels, probs)[0]
    assert groups[pick.index] == 1
    assert "unsure" in pick.reason


def test_disagreement_with_the_nearest_label_draws_picks() -> None:
    features, groups = blobs((60, 60, 60))
    chosen = [int(image) for group in range(3) for image in np.flatnonzero(groups == group)[:4]]
    sure, wrong = np.eye(3)[groups], np.eye(3)[groups]
    wrong[groups == 2] = np.eye(3)[0]

    def picked(probs: np.ndarray) -> list[Pick]:
        picks = Picker(features).next(12, labelled(groups, chosen), probs)
        return [pick for pick in picks if groups[pick.index] == 2]

    assert len(picked(wrong)) > len(picked(sure))
    assert all("disagree" in pick.reason for pick in picked(wrong))


def test_a_model_of_few_labels_is_hardly_followed() -> None:
    generator = np.random.default_rng(0)
    probs, near = generator.dirichlet(np.ones(4), size=50), generator.integers(4, size=50)
    np.testing.assert_allclose(demand(probs, near, labels_per_class=0), 1)
    few, many, more = (demand(probs, near, labels_per_class=count) for count in (1, 3, 300))
    assert few.min() >= 1 - 1 / TRUST
    assert (many < few).all()
    assert more.min() >= FLOOR
    assert (more <= many).all()
    sure = demand(np.eye(4)[near], near, labels_per_class=100)
    np.testing.assert_allclose(sure, FLOOR)


def test_where_classes_vary_images_are_alike_though_they_are_far_apart() -> None:
    """Two long classes side by side: as the classes see them, one label covers its whole class."""
    generator = np.random.default_rng(0)
    groups = np.repeat([0, 1], 100)
    features = generator.normal(size=(200, 6)) * (6, 1, 1, 1, 1, 1)
    features[:, 1] += 5 * groups
    points = features - features.mean(axis=0)
    labels = np.where(np.arange(200) % 10 == 0, groups, -1)
    units = seen_by_labels((points / points.std()).astype(np.float32), labels, np.eye(2)[groups])
    before = unit_rows(points)

    def apart(rows: np.ndarray) -> float:
        cosines = rows @ rows.T
        return float(cosines[groups[:, None] == groups].mean() - cosines[groups[:, None] != groups].mean())

    assert apart(units) > 1.5 * apart(before)


def test_shaped_picks_are_other_images_and_repeat() -> None:
    features, groups = blobs(SIZES, spread=0.9)
    labels = labelled(groups, indices(Picker(features), 10))
    probs = FastModel(features).predict(labels, classes=5).probs
    picker = Picker(features)
    shaped = picker.next(12, labels, probs, shaped=True)
    assert shaped == Picker(features).next(12, labels, probs, shaped=True)
    assert shaped != picker.next(12, labels, probs)
    assert not {pick.index for pick in shaped} & set(np.flatnonzero(labels >= 0).tolist())


def test_what_labels_stand_for_sums_to_all_and_gives_the_class_frequencies() -> None:
    features, groups = blobs(SIZES)
    picker = Picker(features)
    chosen = indices(picker, len(SIZES))
    assert picker.stands_for(chosen).sum() == len(features)
    prior = picker.prior(labelled(groups, chosen), classes=7)
    labels = [*(5 * np.array(SIZES) / sum(SIZES)), 0, 0]  # five labels, shared out by what they stand for
    np.testing.assert_allclose(prior, (np.array(labels) + 0.4) / (5 + 7 * 0.4))
    probs = np.zeros((len(features), 7))
    probs[:, 6] = 1.0  # a model's opinion is the other half
    prior = picker.prior(labelled(groups, chosen), classes=7, probs=probs)
    np.testing.assert_allclose(prior, (np.array(labels) / 2 + [0, 0, 0, 0, 0, 0, 2.5] + 0.4) / (5 + 7 * 0.4))


def test_coverage_grows_with_labels_and_falls_when_one_is_taken_back() -> None:
    features, groups = blobs(SIZES)
    picker = Picker(features)
    steps = [picker.covered(labelled(groups, list(range(count)))) for count in (0, 5, 50, len(features))]
    assert steps == sorted(steps)
    assert steps[0] == 0
    assert steps[-1] == pytest.approx(1, abs=1e-5)
    assert picker.covered(labelled(groups, list(range(5)))) == pytest.approx(steps[1])


@pytest.mark.parametrize(("count", "n"), [(1, 1), (1, 5), (2, 5), (40, 40), (40, 100)])
def test_asking_for_all_or_more_gives_each_image_once(count: int, n: int) -> None:
    features, _ = blobs((count,))
    picks = Picker(features).next(n)
    assert sorted(pick.index for pick in picks) == list(range(count))[: min(n, count)]
    assert sum(pick.stands_for for pick in picks) == count


def test_identical_images_and_zeros_are_no_problem() -> None:
    for features in (np.ones((30, 5)), np.zeros((30, 5))):
        picks = Picker(features).next(4)
        assert len({pick.index for pick in picks}) == 4
        assert sum(pick.stands_for for pick in picks) == 30


def test_nothing_is_left_when_all_are_labelled_and_nothing_is_there_before_the_first_image() -> None:
    features, groups = blobs((10, 10))
    assert Picker(features).next(5, groups) == []
    assert Picker().next(5) == []


def test_wrong_shapes_are_refused() -> None:
    features, groups = blobs((10, 10))
    picker = Picker(features)
    with pytest.raises(DataError, match="one per image"):
        picker.next(1, groups[:5])
    with pytest.raises(DataError, match="a row per image"):
        picker.next(1, groups - groups.max() + 0, np.ones((3, 2)))
    with pytest.raises(DataError, match="1 or more"):
        picker.next(0)
    with pytest.raises(DataError, match="earlier ones have 24"):
        picker.add(np.ones((2, 3)))
    features[7, 2] = np.nan
    with pytest.raises(DataError, match="image 7"):
        Picker(features)


def test_lazy_choice_is_the_greedy_one() -> None:
    """Against a plain loop over the whole table."""
    generator = np.random.default_rng(5)
    units = generator.normal(size=(200, 6)).astype(np.float32)
    units /= np.linalg.norm(units, axis=1, keepdims=True)
    weights = generator.random(200).astype(np.float32)
    coverage = Coverage(units)
    coverage.cover([3, 9])
    kernel = np.stack([coverage.similarity(image) for image in range(200)])
    covered, expected = np.maximum(kernel[3], kernel[9]), list[int]()
    for _ in range(15):
        gains = np.maximum(kernel - covered, 0) @ weights
        gains[[3, 9, *expected]] = -1
        expected.append(int(gains.argmax()))
        covered = np.maximum(covered, kernel[expected[-1]])
    assert coverage.best(15, without={3, 9}, demand=weights) == expected


def test_the_next_pick_of_thousands_comes_at_once() -> None:
    generator = np.random.default_rng(0)
    features = np.abs(generator.normal(size=(10_000, 64))).astype(np.float32)
    picker = Picker(features)
    labels = np.full(10_000, -1)
    labels[[pick.index for pick in picker.next(40)]] = np.arange(40) % 10
    probs = generator.dirichlet(np.ones(10), size=10_000)
    taken = []
    for turn in range(5):
        began = time.perf_counter()
        labels[picker.next(1, labels, probs)[0].index] = turn
        taken.append(time.perf_counter() - began)
    assert min(taken) < 0.2  # 0.03 s on an idle core; the least, for other programs run too


def test_rounds_with_a_model_find_rare_classes_that_random_labels_miss() -> None:
    features, groups = blobs((400, 60, 30, 12, 6), spread=0.9, dimensions=16, seed=2)
    picker, model = Picker(features), FastModel(features)
    labels = labelled(groups, indices(picker, 5))
    for _ in range(2):
        probs = model.predict(labels, classes=5).probs
        labels = np.where(np.isin(np.arange(len(groups)), indices(picker, 5, labels, probs)), groups, labels)
    random = [len(np.unique(groups[np.random.default_rng(seed).permutation(len(groups))[:15]])) for seed in range(20)]
    assert len(np.unique(labels[labels >= 0])) > np.mean(random)


def test_picks_do_not_depend_on_the_number_of_processors() -> None:
    # Matrices multiplied on several threads differ in their last bits, which is enough for another pick.
    features = np.random.default_rng(0).normal(size=(1500, 700)).astype(np.float32)
    labels = np.full(1500, -1)
    labels[:40] = np.arange(40) % 4

    def answers() -> list[np.ndarray]:
        picker = Picker(features)
        model = FastModel(picker.seen)
        probs = model.predict(labels).probs
        chosen = indices(picker, 5) + [pick.index for pick in picker.next(5, labels, probs, shaped=True)]
        return [picker.seen.points, probs, np.array(chosen), picker.prior(labels, probs=probs)]

    with threadpool_limits(1, "blas"):
        expected = answers()
    with threadpool_limits(4, "blas"):
        found = answers()
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)
