"""Weak views, crops and the view to evaluate on, against exhaustive search and PIL."""

import numpy as np
import pytest
import torch
from PIL import Image
from scipy.stats import binomtest, kstest
from torch import Tensor

from benchmarks.augment import pil_weak
from protocon.augment import CentreView, RandomCropFlip, WeakView
from protocon.augment.crops import random_boxes
from protocon.augment.resized_crop import resized_crops, round_levels
from protocon.errors import ConfigError
from tests.augment.samples import digits, from_pil, levels_apart, photos, some_keys, to_pil


def every_weak_view(image: Tensor, across: int, down: int) -> dict[tuple[bool, int, int], Tensor]:
    """All flips and moves of one image, by PIL and NumPy."""
    picture = to_pil(image)
    return {
        (flip, dx, dy): from_pil(pil_weak(picture, flip=flip, dx=dx, dy=dy))
        for flip in (False, True)
        for dx in range(-across, across + 1)
        for dy in range(-down, down + 1)
    }


@pytest.mark.parametrize(("height", "width"), [(24, 24), (17, 40)])
def test_weak_views_are_all_flips_and_moves_equally_often(height: int, width: int) -> None:
    image = photos(2, height, width)[1:]
    across, down = round(width / 8), round(height / 8)
    options = every_weak_view(image[0], across, down)
    names = list(options)
    candidates = torch.stack(list(options.values())).flatten(1)
    views = WeakView(flip=True).pixels(image.expand(2000, -1, -1, -1).contiguous(), some_keys(2000)).flatten(1)
    found = [names[int(row)] for row in (candidates[None, :] == views[:40, None]).all(dim=2).int().argmax(dim=1)]
    for name, view in zip(found, views[:40], strict=True):
        assert torch.equal(options[name].flatten(), view)
    # Over all 2,000: by a number that tells the options apart.
    weights = torch.from_numpy(np.random.default_rng(0).integers(1, 1 << 30, candidates.shape[1]))
    marks = {int(mark): name for mark, name in zip((candidates.long() * weights).sum(1), names, strict=True)}
    drawn = [marks[int(mark)] for mark in (views.long() * weights).sum(1)]
    assert binomtest(sum(flip for flip, _, _ in drawn), 2000, 0.5).pvalue > 1e-4
    for axis, reach in ((1, across), (2, down)):
        moves = np.bincount([name[axis] + reach for name in drawn], minlength=2 * reach + 1)
        assert moves.min() > 0
        for count in moves.tolist():
            assert binomtest(count, 2000, 1 / (2 * reach + 1)).pvalue > 1e-4


def test_weak_view_without_flip_or_move() -> None:
    images, keys = photos(50, 16), some_keys(50)
    still = WeakView(flip=False, translate=0.0)(images, keys)
    torch.testing.assert_close(still, images / 255.0, rtol=0, atol=1e-7)
    flipped = WeakView(flip=True, translate=0.0).pixels(images, keys)
    mirrored = (flipped != images).flatten(1).any(dim=1)
    assert 10 < mirrored.sum() < 40
    assert torch.equal(flipped[mirrored], images[mirrored].flip(-1))


def test_weak_view_of_the_smallest_images() -> None:
    for size in (1, 2, 3):
        images = torch.arange(size * size, dtype=torch.uint8).view(1, 1, size, size).expand(20, -1, -1, -1).contiguous()
        views = WeakView(flip=True, translate=0.9).pixels(images, some_keys(20))
        assert views.max() < size * size


def test_boxes_fit_and_have_the_areas_and_ratios_asked_for() -> None:
    boxes, mirrored = random_boxes(some_keys(5000), 200, 200, scale=(0.2, 1.0), ratio=(3 / 4, 4 / 3))
    top, left, height, width = boxes.unbind(1)
    assert (boxes == boxes.round()).all()
    assert (top >= 0).all()
    assert (left >= 0).all()
    assert (top + height <= 200).all()
    assert (left + width <= 200).all()
    area = height * width / 40_000
    assert 0.19 < area.min() < 0.22
    assert area.max() > 0.95
    # Below half the area every ratio fits, so areas there are uniform.
    small = area[area < 0.5]
    assert kstest(((small - 0.2) / 0.3).numpy(), "uniform").pvalue > 1e-4
    ratio = width / height
    assert ratio.min() > 0.73
    assert ratio.max() < 1.37
    assert abs(ratio.log().mean()) < 0.01
    assert binomtest(int(mirrored.sum()), 5000, 0.5).pvalue > 1e-4


def test_boxes_of_a_long_image_fall_back_to_the_largest_centred_one() -> None:
    boxes, _ = random_boxes(some_keys(50), 20, 200, scale=(0.9, 1.0), ratio=(3 / 4, 4 / 3))
    assert (boxes == torch.tensor([0.0, 86.0, 20.0, 27.0])).all()


@pytest.mark.parametrize(("source", "size"), [(64, 64), (40, 96), (150, 32), (61, 33)])
def test_resized_crops_are_pils(source: int, size: int) -> None:
    images = photos(12, source, source + 9)
    boxes, flip = random_boxes(some_keys(12), source, source + 9, scale=(0.1, 1.0), ratio=(0.5, 2.0))
    ours = round_levels(resized_crops(images, boxes, size, flip))
    for image, box, mirrored, result in zip(images, boxes.int().tolist(), flip, ours, strict=True):
        top, left, height, width = box
        crop = to_pil(image).crop((left, top, left + width, top + height))
        expected = from_pil(crop.resize((size, size), Image.Resampling.BILINEAR))
        assert levels_apart(result, expected.flip(-1) if mirrored else expected).max() <= 1


def test_crop_view_shows_its_boxes() -> None:
    images, keys = photos(20, 60), some_keys(20)
    view = RandomCropFlip(32, flip=False)
    boxes, _ = random_boxes(keys, 60, 60, scale=view.scale, ratio=view.ratio)
    expected = resized_crops(images, boxes, 32)
    assert torch.equal(view(images, keys), expected)
    assert torch.equal(view.pixels(images, keys), round_levels(expected))
    mirrored = RandomCropFlip(32).pixels(images, keys) != view.pixels(images, keys)
    assert 3 < mirrored.flatten(1).any(dim=1).sum() < 17


def test_centre_view_keeps_an_image_of_the_right_size() -> None:
    images = photos(3, 32)
    assert torch.equal(CentreView(32)(images, some_keys(3)), CentreView(32)(images, some_keys(3, seed=1)))
    torch.testing.assert_close(CentreView(32)(images, some_keys(3)), images / 255.0, rtol=0, atol=1e-7)


@pytest.mark.parametrize(
    ("images", "size", "crop"), [(photos(4, 60, 90), 32, 1.0), (photos(4, 64), 48, 0.875), (digits(4), 32, 1.0)]
)
def test_centre_view_resizes_the_centred_square_as_pil(images: Tensor, size: int, crop: float) -> None:
    ours = CentreView(size, crop=crop).pixels(images, some_keys(4))
    height, width = images.shape[2:]
    side = round(crop * min(height, width))
    left, top = (width - side) // 2, (height - side) // 2
    for image, result in zip(images, ours, strict=True):
        square = to_pil(image).crop((left, top, left + side, top + side))
        assert levels_apart(result, from_pil(square.resize((size, size), Image.Resampling.BILINEAR))).max() <= 1


@pytest.mark.parametrize(
    "make",
    [
        lambda: WeakView(flip=True, translate=1.0),
        lambda: RandomCropFlip(0),
        lambda: RandomCropFlip(32, scale=(0.0, 1.0)),
        lambda: RandomCropFlip(32, ratio=(2.0, 1.0)),
        lambda: CentreView(32, crop=1.5),
    ],
)
def test_impossible_settings_are_refused(make: object) -> None:
    with pytest.raises(ConfigError):
        make()  # type: ignore[operator]
