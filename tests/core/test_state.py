"""Every number that a part of the core remembers is in its state_dict: a restored part goes on exactly."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from protocon.core.alignment import DistributionAlignment
from protocon.core.bank import SampleBank
from protocon.core.kmeans import ConstrainedKMeans
from protocon.core.prototypes import ClassPrototypes
from tests.core.inputs import distributions, floats, ints, restored, same_state, snapshot, unit_rows

CLASSES, CLUSTERS, DIM, HEADS, SIZE = 4, 5, 6, 2, 40


def kmeans(seed: int) -> ConstrainedKMeans:
    return ConstrainedKMeans(
        clusters=CLUSTERS, dim=DIM, gamma=7.0, population=SIZE, dual_rate=0.4, heads=HEADS, seed=seed
    )


def drive_kmeans(part: nn.Module, step: int) -> None:
    assert isinstance(part, ConstrainedKMeans)
    batch = floats(unit_rows(np.random.default_rng(step), 9, DIM))
    part.update(batch, part.assign(batch).index, move_centroids=step % 2 == 0)
    if step % 5 == 4:
        part.end_epoch(move_centroids=True)


def drive_prototypes(part: nn.Module, step: int) -> None:
    assert isinstance(part, ClassPrototypes)
    rng = np.random.default_rng(step)
    part.add(
        floats(unit_rows(rng, 9, DIM)),
        ints(rng.integers(0, CLASSES, size=9)),
        torch.as_tensor(rng.random(9) < 0.5),
    )
    if step % 5 == 4:
        part.publish()


def drive_alignment(part: nn.Module, step: int) -> None:
    assert isinstance(part, DistributionAlignment)
    part.update(floats(distributions(np.random.default_rng(step), 6, CLASSES)))


def drive_bank(part: nn.Module, step: int) -> None:
    assert isinstance(part, SampleBank)
    rng = np.random.default_rng(step)
    part.write(
        torch.as_tensor(rng.permutation(SIZE)[:9]),
        label=ints(rng.integers(0, CLASSES, size=9)),
        reliable=torch.as_tensor(rng.random(9) < 0.5),
        assignment=ints(rng.integers(0, CLUSTERS, size=(9, HEADS))),
        similarity=floats(rng.uniform(-1, 1, size=(9, HEADS))),
    )


def reading(part: nn.Module) -> Tensor:
    """What a user of the part would see."""
    rng = np.random.default_rng(99)
    if isinstance(part, ConstrainedKMeans):
        found = part.assign(floats(unit_rows(rng, 20, DIM)))
        return torch.cat([found.index.float(), found.similarity], dim=1)
    if isinstance(part, ClassPrototypes):
        return part.prototypes
    if isinstance(part, DistributionAlignment):
        return torch.cat([part.marginal()[None], part(floats(distributions(rng, 3, CLASSES)))])
    assert isinstance(part, SampleBank)
    return torch.cat([part.label[:, None].float(), part.similarity.float()], dim=1)


PARTS: dict[str, tuple[Callable[[int], nn.Module], Callable[[nn.Module, int], None]]] = {
    "kmeans": (kmeans, drive_kmeans),
    "prototypes": (lambda _: ClassPrototypes(CLASSES, DIM), drive_prototypes),
    "alignment, window": (lambda _: DistributionAlignment(CLASSES, window=3), drive_alignment),
    "alignment, momentum": (lambda _: DistributionAlignment(CLASSES, momentum=0.9), drive_alignment),
    "bank": (
        lambda _: SampleBank(SIZE, classes=CLASSES, clusters=CLUSTERS, heads=HEADS),
        drive_bank,
    ),
}


@pytest.mark.parametrize("name", PARTS)
@pytest.mark.parametrize("interruption", [1, 4, 7])
def test_a_restored_part_goes_on_bit_for_bit(name: str, interruption: int) -> None:
    build, drive = PARTS[name]
    whole = build(1)
    for step in range(interruption):
        drive(whole, step)
    resumed = restored(whole, build(2))
    for step in range(interruption, 13):
        drive(whole, step)
        drive(resumed, step)
        assert same_state(snapshot(whole), snapshot(resumed))
        assert torch.equal(reading(whole), reading(resumed))
    assert not same_state(snapshot(whole), snapshot(build(1)))  # something was remembered at all


@pytest.mark.parametrize("name", PARTS)
def test_state_is_persistent_buffers_only(name: str) -> None:
    build, drive = PARTS[name]
    part = build(1)
    names = set(part.state_dict())
    for step in range(6):
        drive(part, step)
    assert not list(part.parameters())
    assert set(dict(part.named_buffers())) == set(part.state_dict()) == names
    loose = [k for k, v in vars(part).items() if isinstance(v, Tensor | list | dict | np.ndarray) and k[0] != "_"]
    assert not loose


@pytest.mark.parametrize("name", PARTS)
def test_no_part_keeps_the_graph_of_what_it_was_given(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # All of this state is targets: a graph kept in it would hold the activations of a whole epoch.
    build, drive = PARTS[name]
    part = build(1)
    plain = floats
    monkeypatch.setitem(globals(), "floats", lambda array: plain(array).requires_grad_())
    for step in range(6):
        drive(part, step)
    assert not same_state(snapshot(part), snapshot(build(1)))
    assert not [k for k, value in part.state_dict(keep_vars=True).items() if value.requires_grad]


@pytest.mark.parametrize("name", PARTS)
def test_a_new_part_with_the_same_arguments_is_the_same(name: str) -> None:
    build, drive = PARTS[name]
    first, second = build(1), build(1)
    for step in range(6):
        drive(first, step)
        torch.manual_seed(step)  # a draw from the global generator would tell them apart
        drive(second, step)
    assert same_state(snapshot(first), snapshot(second))


def test_prior_of_an_alignment_is_saved_with_it() -> None:
    prior = torch.tensor([0.7, 0.1, 0.1, 0.1])
    whole = DistributionAlignment(CLASSES, prior=prior)
    drive_alignment(whole, 0)
    resumed = restored(whole, DistributionAlignment(CLASSES, prior=torch.full((4,), 0.25)))
    assert torch.equal(reading(whole), reading(resumed))
