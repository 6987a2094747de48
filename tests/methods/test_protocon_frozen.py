"""ProtoCon on features that do not change: the fixed point is found before training, and trains the heads."""

import numpy as np
import pytest
import torch

from protocon.core.label_trust import fitted_temperature
from protocon.methods import METHODS, Problem, Samples, neighbourhood
from protocon.methods.needs import Facts
from protocon.methods.neighbourhood import NeighbourhoodSettings, find_neighbourhood, find_neighbourhoods
from protocon.methods.protocon_frozen import ProtoConFrozen, ProtoConFrozenConfig
from protocon.types import Batch, Outputs, Progress
from tests.picking.blobs import blobs


def problem(groups: np.ndarray, labelled: np.ndarray) -> Problem:
    targets = torch.from_numpy(groups[labelled])
    return Problem(int(groups.max()) + 1, len(groups) - len(labelled), targets, projection_dim=0)


def samples(rows: np.ndarray, groups: np.ndarray, labelled: np.ndarray) -> Samples:
    others = np.setdiff1d(np.arange(len(groups)), labelled)
    return Samples(
        views=torch.from_numpy(rows)[:, None].float(),
        labelled=torch.from_numpy(labelled),
        targets=torch.from_numpy(groups[labelled]),
        unlabelled=torch.from_numpy(others),
    )


def solved(sizes: tuple[int, ...], spread: float, **settings: object) -> tuple[ProtoConFrozen, np.ndarray]:
    rows, groups = blobs(sizes, spread=spread)
    labelled = np.array([np.flatnonzero(groups == group)[0] for group in range(len(sizes))])
    config = ProtoConFrozenConfig.model_validate(settings).settled(Facts(len(groups), len(sizes)), {})
    method = ProtoConFrozen(config, problem(groups, labelled))
    data = samples(rows, groups, labelled)
    method.prepare(data)
    return method, groups[data.unlabelled.numpy()]


def test_one_label_per_group_labels_the_others_and_finds_how_frequent_they_are() -> None:
    method, truth = solved((120, 60, 20), 0.4)
    assert (method.neighbourhood.argmax(-1).numpy() == truth).mean() > 0.95
    assert float((method.prior - torch.tensor([0.6, 0.3, 0.1])).abs().sum()) < 0.15
    torch.testing.assert_close(method.neighbourhood.sum(-1), torch.ones(len(truth)))


def test_unlabelled_images_help() -> None:
    """Without Gaussians and neighbours only the linear classifier of the labels is left."""
    right = []
    for settings in ({}, {"sharpness": 0.0, "smoothing": 0.0}):
        method, truth = solved((150, 150, 150, 150), 1.2, **settings)
        right.append((method.neighbourhood.argmax(-1).numpy() == truth).mean())
    assert right[0] > right[1] + 0.02


def misleading() -> tuple[np.ndarray, np.ndarray]:
    """One direction tells the classes apart; in all the others, which decide who is near, groups mix them."""
    draw = np.random.default_rng(0)
    groups = np.arange(240) % 2
    centres = 6.0 * draw.standard_normal((12, 8))
    place = draw.integers(12, size=240)
    rows = np.concatenate([2.0 * (groups[:, None] * 2 - 1), centres[place]], 1) + 0.3 * draw.standard_normal((240, 9))
    return rows.astype(np.float32), groups


def test_where_neighbours_mislead_the_linear_classifier_is_heard() -> None:
    rows, groups = misleading()
    labelled = np.concatenate([np.flatnonzero(groups == group)[:10] for group in (0, 1)])
    data = samples(rows, groups, labelled)
    settings = NeighbourhoodSettings(smoothing=20.0)
    heard = find_neighbourhood(data, classes=2, settings=settings)
    deaf = find_neighbourhood(data, classes=2, settings=settings.model_copy(update={"held_out_groups": 0}))
    assert heard.linear_share > 0.5
    assert deaf.linear_share == 0.1
    right = [(found.probs.argmax(1) == groups).mean() for found in (heard, deaf)]
    assert right[0] > right[1]


def test_neighbours_are_looked_for_where_classes_do_not_vary() -> None:
    """Few directions tell the classes apart; two others vary far more, and decide who is near until they are scaled."""
    draw = np.random.default_rng(1)
    groups = np.arange(300) % 3
    told = 1.5 * np.eye(3)[groups] @ draw.standard_normal((3, 6)) + 0.5 * draw.standard_normal((300, 6))
    rows = np.concatenate([told, 4.0 * draw.standard_normal((300, 2))], 1)
    labelled = np.concatenate([np.flatnonzero(groups == group)[:3] for group in range(3)])
    data = samples(rows.astype(np.float32), groups, labelled)
    right = []
    for shaped in (True, False):
        settings = NeighbourhoodSettings(shaped_neighbours=shaped, sharpness=0.1, held_out_groups=0)
        right.append((find_neighbourhood(data, classes=3, settings=settings).probs.argmax(1) == groups).mean())
    assert right[0] > right[1] + 0.02, right


def badly_labelled() -> tuple[Samples, np.ndarray]:
    """Two groups of the same size; the labels of one lie far from the other, those of the other near the first."""
    rows, groups = blobs((200, 200), spread=1.5, seed=1)
    apart = rows[groups == 1].mean(0) - rows[groups == 0].mean(0)
    members = [np.flatnonzero(groups == group) for group in (0, 1)]
    labelled = np.concatenate([own[np.argsort(rows[own] @ apart)[:4]] for own in members])
    return samples(rows, groups, np.sort(labelled)), groups


@pytest.mark.parametrize("given", [True, False])
def test_opinions_are_aligned_to_class_frequencies(given: bool) -> None:
    data, groups = badly_labelled()
    right, away = [], []
    for aligned in (True, False):
        settings = NeighbourhoodSettings(aligned=aligned, agreements=1 if given else 3, held_out_groups=0)
        prior = np.full(2, 0.5) if given and aligned else None
        found = find_neighbourhood(data, classes=2, settings=settings, prior=prior)
        right.append((found.probs.argmax(1) == groups).mean())
        away.append(abs(found.probs[:, 0].mean() - 0.5))
    assert right[0] > right[1] + 0.02, right
    assert away[0] < 0.8 * away[1], away


def rarely_seen() -> tuple[np.ndarray, np.ndarray]:
    """Four overlapping groups; seven of ten images are of the first."""
    rows, groups = blobs((210, 30, 30, 30), spread=1.2, seed=3)
    return rows, groups


def test_one_more_label_does_not_make_chosen_numbers_drawn_ones() -> None:
    rows, groups = rarely_seen()
    members = [np.flatnonzero(groups == group) for group in range(4)]
    settings = NeighbourhoodSettings(held_out_groups=0)
    first = []
    for extra in (0, 1):
        labelled = np.concatenate([own[: 4 + (extra if not group else 0)] for group, own in enumerate(members)])
        found = find_neighbourhood(samples(rows, groups, np.sort(labelled)), classes=4, settings=settings)
        first.append(float(found.prior[0]))
    assert first[0] > 0.55
    assert first[1] == pytest.approx(first[0], abs=0.05)


def test_runs_that_hold_out_labels_of_chosen_numbers_are_aligned_like_the_run_itself() -> None:
    rows, groups = rarely_seen()
    labelled = np.sort(np.concatenate([np.flatnonzero(groups == group)[:4] for group in range(4)]))
    settings = NeighbourhoodSettings()
    whole = find_neighbourhood(samples(rows, groups, labelled), classes=4, settings=settings)
    runs = [samples(rows, groups, np.delete(labelled, place)) for place in range(4)]
    for found in find_neighbourhoods(runs, classes=4, settings=settings):
        assert float(found.prior[0]) == pytest.approx(float(whole.prior[0]), abs=0.06)


def test_the_same_samples_give_the_same_bits() -> None:
    one, other = (solved((40, 40), 2.0)[0] for _ in range(2))
    assert torch.equal(one.neighbourhood, other.neighbourhood)


@pytest.mark.parametrize("aligned", [True, False])
def test_a_given_prior_is_taken(aligned: bool) -> None:
    plain, _ = solved((60, 60), 1.5)
    pulled, _ = solved((60, 60), 1.5, class_prior=[0.8, 0.2], aligned=aligned)
    assert float(plain.neighbourhood[:, 0].mean()) == pytest.approx(0.5, abs=0.1)
    assert float(pulled.neighbourhood[:, 0].mean()) == pytest.approx(0.8, abs=0.1)
    assert pulled.prior.tolist() == pytest.approx([0.8, 0.2])
    assert pulled.estimated_prior() is None  # it was given


def test_uniform_frequencies_are_given_ones_too() -> None:
    plain, _ = solved((120, 30), 1.5)
    even, _ = solved((120, 30), 1.5, class_prior="uniform")
    # Most images are too clear to be moved.
    assert 0.5 < float(even.neighbourhood[:, 0].mean()) < float(plain.neighbourhood[:, 0].mean()) - 0.1
    assert even.prior.tolist() == [0.5, 0.5]


def test_heads_learn_the_soft_labels_and_the_final_label_mixes_both_opinions() -> None:
    method, _ = solved((30, 30, 30), 0.5, alpha=0.25)
    index = torch.arange(8)
    logits = torch.zeros(8, 3, requires_grad=True)
    batch = Batch(
        labelled=torch.zeros(3, 2),
        targets=torch.arange(3),
        labelled_index=torch.arange(3),
        weak=torch.zeros(8, 2),
        strong=(torch.zeros(8, 2),),
        index=index,
    )

    def network(x: torch.Tensor) -> Outputs:
        own = torch.cat([torch.zeros(len(x) - 8, 3), logits]) if len(x) > 8 else logits
        return Outputs(own, own[:, :0])

    step = method.step(network, network, batch, Progress(1, 5, 10, 50))
    assert step.loss is not None
    torch.autograd.backward(step.loss)
    assert logits.grad is not None
    # The gradient of cross-entropy: what is predicted minus what should be.
    torch.testing.assert_close(logits.grad, (torch.full((8, 3), 1 / 3) - method.neighbourhood[index]) / 8)
    probs = torch.full((8, 3), 1 / 3)
    expected = 0.25 * probs + 0.75 * method.neighbourhood[index]
    torch.testing.assert_close(method.opinions(probs, index)["refined"], expected, atol=1e-5, rtol=0)
    method.temperature.fill_(2.0)
    calm = method.opinions(probs, index)["refined"]
    assert (calm.argmax(-1) == expected.argmax(-1)).all()
    assert (calm.max(-1).values < expected.max(-1).values).all()


def test_it_asks_for_all_features() -> None:
    assert METHODS["protocon-frozen"].uses_samples
    assert not METHODS["protocon"].uses_samples


def left_out(labelled: np.ndarray, runs: int) -> list[np.ndarray]:
    return [labelled[np.arange(len(labelled)) % runs != run] for run in range(runs)]


def test_runs_without_some_labels_tell_the_others_how_good_they_are() -> None:
    """By a plain reference: each label predicted by the one run that lacks it, share and temperature from these."""
    rows, groups = blobs((60, 60, 60), spread=1.4)
    labelled = np.concatenate([np.flatnonzero(groups == group)[:6] for group in range(3)])
    kept = left_out(labelled, 6)  # one of each class
    settings = NeighbourhoodSettings(held_out_groups=0)
    runs = [samples(rows, groups, np.sort(own)) for own in kept]
    alone = [find_neighbourhood(run, classes=3, settings=settings) for run in runs]
    found = find_neighbourhoods(runs, classes=3, settings=settings)
    for number, (own, one) in enumerate(zip(kept, found, strict=True)):
        known, said = [], []
        for other, missing in enumerate(np.setdiff1d(labelled, some) for some in kept):
            if other != number:
                known.append(groups[missing])
                said.append(alone[other].probs[missing])
        assert np.isin(np.concatenate(known), groups[own]).all()
        # With so few mistakes the linear classifier keeps its smallest share, as it has without held-out labels.
        assert one.linear_share == pytest.approx(0.1)
        np.testing.assert_allclose(one.probs, alone[number].probs, atol=1e-5)
        temperature = fitted_temperature(np.concatenate(said), np.concatenate(known))
        assert one.temperature == pytest.approx(temperature, rel=1e-6)


def test_where_neighbours_mislead_held_out_runs_hear_the_linear_classifier_too() -> None:
    rows, groups = misleading()
    runs = [samples(rows, groups, np.sort(own)) for own in left_out(np.arange(20), 10)]
    found = find_neighbourhoods(runs, classes=2, settings=NeighbourhoodSettings(smoothing=20.0))
    assert min(one.linear_share for one in found) > 0.5


def test_no_run_learns_how_well_its_own_missing_labels_are_predicted() -> None:
    rows, groups = blobs((60, 60, 60), spread=1.4)
    labelled = np.concatenate([np.flatnonzero(groups == group)[:6] for group in range(3)])
    order = labelled.reshape(3, 6).T.ravel()
    kept = left_out(order, 6)
    settings = NeighbourhoodSettings()
    asked: list[np.ndarray] = []

    def watched(probs: np.ndarray, known: np.ndarray) -> float:
        asked.append(known)
        return fitted_temperature(probs, known)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(neighbourhood, "fitted_temperature", watched)
        found = find_neighbourhoods([samples(rows, groups, np.sort(own)) for own in kept], classes=3, settings=settings)
    assert len(found) == len(asked) == 6
    for known, own in zip(asked, kept, strict=True):
        np.testing.assert_array_equal(np.sort(known), np.sort(groups[own]))


def test_of_few_runs_each_holds_out_its_own_labels() -> None:
    rows, groups = blobs((60, 60, 60), spread=1.4)
    labelled = np.concatenate([np.flatnonzero(groups == group)[:6] for group in range(3)])
    config = ProtoConFrozenConfig().settled(Facts(len(groups), 3), {})
    runs = [samples(rows, groups, np.sort(own)) for own in left_out(labelled, 2)]
    methods = [ProtoConFrozen(config, problem(groups, run.labelled.numpy())) for run in runs]
    ProtoConFrozen.prepare_together(methods, runs)
    for method, run in zip(methods, runs, strict=True):
        lone = ProtoConFrozen(config, problem(groups, run.labelled.numpy()))
        lone.prepare(run)
        assert torch.equal(method.neighbourhood, lone.neighbourhood)
        assert torch.equal(method.temperature, lone.temperature)
