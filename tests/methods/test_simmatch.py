"""SimMatch against its equations, and what its bank of labelled images does."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from protocon.core.labelled_bank import LabelledBank, aggregate, calibrate, last_occurrence
from protocon.types import Outputs
from tests.core.inputs import distributions, floats, ints, numpy64, quick, seeds, unit_rows
from tests.methods import reference_methods as reference
from tests.methods.harness import DIM, LABELLED, Run, build, loss_of, problem, progress
from tests.methods.watching import aligned, supervised, unlabelled, watch
from tests.reference import Floats

TEMPERATURE = 0.1


def instance_loss(target: Floats, source: Floats) -> float:
    return float(-np.mean((target * np.log(source)).sum(axis=1)))


def last_writes(index: list[int], rows: Floats) -> list[tuple[int, Floats]]:
    """One write for each image of a batch: its last row."""
    return list({image: (image, row) for image, row in zip(index, rows, strict=True)}.values())


@pytest.mark.parametrize("momentum", [0.0, 0.7])
def test_a_step_is_the_papers_once_the_bank_is_full(momentum: float) -> None:
    method = build("simmatch", alpha=0.6, threshold=0.6, bank_momentum=momentum)
    run = Run(method)
    past, seen = watch(run, 14)
    writes = [write for e in past for write in last_writes(e.labelled_index.tolist(), e.labelled_embeddings)]
    bank, filled = reference.simmatch_bank(writes, LABELLED, DIM, momentum)
    assert filled.all()
    labels = problem().labelled_targets.numpy()
    own = aligned(seen.probs, [earlier.probs for earlier in past])
    weak = [reference.simmatch_similarity(z, bank, TEMPERATURE) for z in seen.embeddings]
    strong = [reference.simmatch_similarity(z, bank, TEMPERATURE) for z in seen.strong_embeddings[0]]
    refined = np.array([reference.simmatch_refined(q, p, labels, 0.6) for q, p in zip(weak, own, strict=True)])
    target = np.array([reference.simmatch_calibrated(q, p, labels) for q, p in zip(weak, own, strict=True)])
    reliable = (refined.max(axis=1) >= 0.6).astype(np.float64)
    assert 0 < reliable.mean() < 1
    loss_u = unlabelled(refined, reliable, seen.strong_logits[0])
    loss_in = instance_loss(target, np.array(strong))
    step = run.look()
    assert float(step.terms["loss_u"]) == pytest.approx(loss_u, abs=1e-5)
    assert float(step.terms["loss_in"]) == pytest.approx(loss_in, abs=1e-4)
    assert loss_of(step) == pytest.approx(supervised(seen) + loss_u + loss_in, abs=1e-4)
    assert step.rows["refined"].tolist() == refined.argmax(axis=1).tolist()


@quick
@given(seed=seeds, n=st.integers(1, 5), m=st.integers(1, 9), classes=st.integers(1, 4))
def test_propagation_matches_reference(seed: int, n: int, m: int, classes: int) -> None:
    rng = np.random.default_rng(seed)
    q, p = distributions(rng, n, m), distributions(rng, n, classes) + 1e-3
    labels = rng.integers(0, classes, size=m)
    calibrated = calibrate(floats(q, torch.float64), floats(p, torch.float64), ints(labels))
    summed = aggregate(floats(q, torch.float64), ints(labels), classes=classes)
    for row in range(n):
        expected = reference.simmatch_calibrated(q[row], p[row], labels)
        np.testing.assert_allclose(numpy64(calibrated)[row], expected, atol=1e-9)
        only = reference.simmatch_refined(q[row], p[row], labels, 0.0)
        np.testing.assert_allclose(numpy64(summed)[row], only, atol=1e-9)


@quick
@given(
    seed=seeds,
    momentum=st.sampled_from([0.0, 0.7]),
    batches=st.lists(st.lists(st.integers(0, 4), max_size=7), max_size=5),
)
def test_bank_takes_the_last_of_repeated_images(seed: int, momentum: float, batches: list[list[int]]) -> None:
    rng = np.random.default_rng(seed)
    bank = LabelledBank(torch.arange(5) % 2, dim=3, momentum=momentum)
    writes: list[tuple[int, Floats]] = []
    for index in filter(None, batches):
        rows = unit_rows(rng, len(index), 3)
        bank.update(torch.tensor(index), floats(rows))
        writes += last_writes(index, rows)
    expected, seen = reference.simmatch_bank(writes, 5, 3, momentum)
    np.testing.assert_allclose(numpy64(bank.embeddings), expected, atol=1e-5)
    assert bank.seen.tolist() == seen.tolist()
    assert bool(bank.ready()) == bool(seen.all())


def test_what_is_written_does_not_depend_on_the_order_of_writes() -> None:
    bank = LabelledBank(torch.arange(3), dim=4, momentum=0.7)
    index, rows = torch.tensor([1, 0, 1, 1]), floats(unit_rows(np.random.default_rng(0), 4, 4))
    for _ in range(2):  # the first embeddings of these images, then further ones
        moved = bank.moved(index, rows)
        assert torch.equal(moved[0], moved[2])
        assert torch.equal(moved[0], moved[3])
        bank.update(index, rows)
        assert torch.equal(bank.embeddings[index], moved)
        rows = rows.flip(0)


def test_last_occurrence() -> None:
    assert last_occurrence(torch.tensor([3, 1, 3, 3, 1, 0])).tolist() == [3, 4, 3, 3, 4, 5]


def test_labelled_images_nearby_pull_the_pseudo_label_to_their_class() -> None:
    place = torch.nn.functional.normalize(torch.ones(DIM), dim=0)

    def undecided(x: Tensor) -> Outputs:
        return Outputs(torch.zeros(len(x), 4), place.expand(len(x), DIM))

    run = Run(build("simmatch", alpha=0.5, teacher="eman"), teacher=undecided)
    first = run.look()
    assert not (first.rows["refined"] == 2).any()
    # All labelled images of class 2 lie where the unlabelled ones do, the others opposite.
    towards = torch.where((problem().labelled_targets == 2)[:, None], place, -place)
    filled = {"labelled_index": torch.arange(LABELLED), "labelled_embeddings": towards}
    run.method.commit(first.rows | filled, progress(0))
    assert (run.look().rows["refined"] == 2).all()


def test_a_sure_class_keeps_similarity_to_its_own_images_alone() -> None:
    labels = problem().labelled_targets
    sure = torch.tensor([[0.0, 0.0, 1.0, 0.0]])
    kept = calibrate(torch.full((1, LABELLED), 1 / LABELLED), sure, labels)
    assert torch.allclose(kept[0], (labels == 2) / 3)


def test_the_bank_is_silent_until_every_labelled_image_is_in_it() -> None:
    method = build("simmatch", alpha=0.1)
    run = Run(method)
    plain = Run(build("fixmatch-da", soft_labels=True))
    bank = method.bank
    assert isinstance(bank, LabelledBank)
    while not bool(bank.ready()):
        step, other = run.advance()[0], plain.advance()[0]
        assert float(step.terms["loss_in"]) == 0.0
        assert loss_of(step) == pytest.approx(loss_of(other), abs=1e-6)
    assert 2 < run.step < 14
    assert float(run.look().terms["loss_in"]) > 0
