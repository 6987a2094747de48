"""The strong view: what is drawn, in which order it is applied, and the square that is cut out."""

import pytest
import torch
from scipy.stats import binomtest, kstest
from torch import Tensor

from benchmarks.augment import PIL_OPERATIONS, pil_cutout
from protocon.augment import OPERATIONS, RandAugmentView, RandomCropFlip, WeakView
from protocon.augment.randaugment import cut_out
from protocon.errors import ConfigError
from tests.augment.samples import digits, from_pil, levels_apart, photos, some_keys, to_pil


def by_pil(view: RandAugmentView, images: Tensor, keys: Tensor) -> Tensor:
    """The same strong views made by PIL, one operation after the other, from the view's own draws."""
    start = images if view.weak is None else view.weak.pixels(images, keys)
    draws = view.draw(keys)
    results = []
    for number, image in enumerate(start):
        picture = to_pil(image)
        for turn in range(view.ops):
            if draws.applied[number, turn]:
                name = view.pool[int(draws.operation[number, turn])].name
                picture = PIL_OPERATIONS[name](picture, draws.magnitude[number, turn].item())
        row, column = (draws.centre[number] * torch.tensor([picture.height, picture.width])).long().tolist()
        side = round(view.cutout * min(picture.size))
        results.append(from_pil(pil_cutout(picture, column, row, side)))
    return torch.stack(results)


@pytest.mark.parametrize("ops", [1, 2, 3])
def test_view_is_pils_chain_of_operations(ops: int) -> None:
    images, keys = photos(120, 32), some_keys(120)
    view = RandAugmentView(WeakView(flip=True), ops=ops, probability=0.8)
    apart = levels_apart(view.pixels(images, keys), by_pil(view, images, keys))
    # AutoContrast is one level off in places, which a later operation can enlarge.
    assert (apart > 0).float().mean() < 0.01
    assert (apart.amax(dim=(1, 2, 3)) <= 1).float().mean() > 0.96


@pytest.mark.parametrize(("images", "weak"), [(photos(30, 48), RandomCropFlip(40)), (digits(30), None)])
def test_view_is_pils_chain_on_crops_and_on_one_channel(images: Tensor, weak: RandomCropFlip | None) -> None:
    keys = some_keys(30)
    view = RandAugmentView(weak, cutout=0.25)
    apart = levels_apart(view.pixels(images, keys), by_pil(view, images, keys))
    assert (apart.amax(dim=(1, 2, 3)) <= 1).float().mean() > 0.96


def test_order_of_operations_is_the_one_drawn() -> None:
    pair = tuple(entry for entry in OPERATIONS if entry.name in ("Solarize", "Brightness"))
    view = RandAugmentView(pool=pair, probability=1.0, cutout=0.0)
    images, keys = photos(64, 32), some_keys(64)
    draws = view.draw(keys)

    def one_by_one(first: int, second: int) -> Tensor:
        results = images.clone()
        for row in range(64):
            for turn in (first, second):
                operation = pair[int(draws.operation[row, turn])]
                results[row] = operation(results[row, None], draws.magnitude[row, turn, None])[0]
        return results

    assert torch.equal(view.pixels(images, keys), one_by_one(0, 1))
    assert not torch.equal(view.pixels(images, keys), one_by_one(1, 0))


def test_operations_are_drawn_equally_often_and_applied_at_their_rate() -> None:
    draws = RandAugmentView(probability=0.3).draw(some_keys(20_000))
    for turn in range(2):
        counts = torch.bincount(draws.operation[:, turn], minlength=14)
        for count in counts.tolist():
            assert binomtest(count, 20_000, 1 / 14).pvalue > 1e-4
        assert binomtest(int(draws.applied[:, turn].sum()), 20_000, 0.3).pvalue > 1e-4
    # The two draws of an image know nothing of each other.
    same = int((draws.operation[:, 0] == draws.operation[:, 1]).sum())
    assert binomtest(same, 20_000, 1 / 14).pvalue > 1e-4


def test_magnitudes_are_uniform_in_their_ranges() -> None:
    draws = RandAugmentView().draw(some_keys(20_000))
    for number, operation in enumerate(OPERATIONS):
        drawn = draws.magnitude[draws.operation == number]
        if operation.low < operation.high:
            share = (drawn - operation.low) / (operation.high - operation.low)
            assert kstest(share.numpy(), "uniform").pvalue > 1e-4, operation.name
        else:
            assert not drawn.any()


def test_square_has_its_size_and_its_place() -> None:
    images = torch.zeros(4, 3, 20, 30, dtype=torch.uint8)
    centre = torch.tensor([[0.5, 0.5], [0.0, 0.0], [0.99, 0.99], [0.0, 0.5]])
    grey = cut_out(images, centre, share=0.5)[:, 0] == 127
    # Side 10 around row 10 and column 15: rows 5 … 14, columns 10 … 19.
    assert grey[0, 5:15, 10:20].all()
    assert grey.sum(dim=(1, 2)).tolist() == [100, 25, 6 * 6, 50]


def test_square_covers_the_share_it_should() -> None:
    images = torch.zeros(2000, 1, 32, 32, dtype=torch.uint8)
    view = RandAugmentView(ops=0)
    grey = view(images, some_keys(2000)) > 0.4
    # A side of 16 around column c shows min(32, c + 8) - max(0, c - 8) columns.
    shown = sum(min(32, c + 8) - max(0, c - 8) for c in range(32)) / 32
    assert grey.sum(dim=(1, 2, 3)).float().mean().item() == pytest.approx(shown**2, rel=0.03)
    assert (RandAugmentView(ops=0, cutout=0.0)(images[:5], some_keys(5)) == 0).all()


def test_grey_is_half_to_the_nearest_level() -> None:
    view = RandAugmentView(ops=0)(torch.zeros(3, 3, 16, 16, dtype=torch.uint8), some_keys(3))
    painted = view[view > 0.0]
    assert len(painted) > 3 * 3 * 16
    assert ((painted - 0.5).abs() <= 0.5 / 255 + 1e-6).all()


@pytest.mark.parametrize("bad", [{"ops": -1}, {"probability": 1.5}, {"cutout": -0.1}, {"pool": ()}])
def test_impossible_settings_are_refused(bad: dict[str, object]) -> None:
    with pytest.raises(ConfigError):
        RandAugmentView(**bad)  # type: ignore[arg-type]
