"""The compiled views against the torch ones: equal levels on 8-bit pixels, equal to rounding on floats."""

import pytest
import torch
from torch import Tensor

from protocon.augment import OPERATIONS, RandAugmentView, RandomCropFlip, SimCLRView, View, WeakView
from tests.augment.samples import digits, photos, some_keys

pytest.importorskip("numba", reason="numba is not installed: pip install protocon[fast]")

WEAK = WeakView(flip=True)
KINDS = {"small": photos(40, 32), "large": photos(12, 97), "grey": digits(40), "wide": photos(12, 64)[:, :, :37]}


def same_levels(view: View, fused: View, images: Tensor) -> None:
    keys = some_keys(len(images))
    expected, got = view(images, keys), fused(images, keys)
    assert torch.equal(got, expected)
    assert got.stride() == expected.stride()
    assert not torch.equal(expected, images / 255.0)


@pytest.mark.parametrize("kind", KINDS)
def test_weak_views_are_the_same(kind: str) -> None:
    for flip in (True, False):
        same_levels(WeakView(flip=flip), WeakView(flip=flip, engine="numba"), KINDS[kind])


@pytest.mark.parametrize("kind", KINDS)
def test_strong_views_are_the_same(kind: str) -> None:
    same_levels(RandAugmentView(WEAK, ops=3), RandAugmentView(WEAK, ops=3, engine="numba"), KINDS[kind])


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_each_operation_is_the_same(operation: object) -> None:
    alone = {"ops": 1, "probability": 1.0, "cutout": 0.0, "pool": (operation,)}
    for images in (KINDS["small"], KINDS["grey"]):
        same_levels(RandAugmentView(WEAK, **alone), RandAugmentView(WEAK, engine="numba", **alone), images)  # type: ignore[arg-type]


def nearly_the_same(view: View, fused: View, images: Tensor) -> None:
    keys = some_keys(len(images))
    expected, got = view(images, keys), fused(images, keys)
    apart = (got - expected).abs() * 255
    # A sum of columns that falls on a half of a level is rounded either way, as its last bit is: one level, in few
    # pixels (whole ratios of sizes make halves).
    assert apart.max() < 1.5
    assert (apart > 0.05).float().mean() < 0.004
    assert got.stride() == expected.stride()
    assert got.min() >= 0
    assert got.max() <= 1


@pytest.mark.parametrize("kind", KINDS)
def test_crops_are_the_same(kind: str) -> None:
    nearly_the_same(RandomCropFlip(48), RandomCropFlip(48, engine="numba"), KINDS[kind])


@pytest.mark.parametrize("kind", KINDS)
def test_simclr_views_are_the_same(kind: str) -> None:
    nearly_the_same(SimCLRView(80), SimCLRView(80, engine="numba"), KINDS[kind])


def test_threads_change_nothing() -> None:
    images, keys = photos(7, 32), some_keys(7)
    for view in (SimCLRView(32, engine="numba"), RandAugmentView(WEAK, engine="numba")):
        alone = view(images, keys)
        before = torch.get_num_threads()
        torch.set_num_threads(3)
        try:
            assert torch.equal(view(images, keys), alone)
        finally:
            torch.set_num_threads(before)


def test_a_view_is_the_same_in_any_batch() -> None:
    images, keys = photos(6, 40), some_keys(6)
    for view in (SimCLRView(32, engine="numba"), RandAugmentView(WEAK, engine="numba")):
        assert torch.equal(view(images, keys)[3:], view(images[3:], keys[3:]))


def test_strong_views_of_crops_are_the_same_but_for_the_crops_rounding() -> None:
    images, keys = KINDS["large"], some_keys(12)
    crop, fast = RandomCropFlip(64), RandomCropFlip(64, engine="numba")
    cropped = fast.pixels(images, keys)
    assert (cropped.int() - crop.pixels(images, keys).int()).abs().max() <= 1
    # On the very same crops the operations are exact.
    expected = RandAugmentView(None).pixels(cropped, keys)
    got = RandAugmentView(fast, engine="numba")(images, keys)
    assert torch.equal((got * 255).round().to(torch.uint8), expected)
