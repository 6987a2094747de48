"""What every view promises: shape, range, layout, and that it is a pure function of image and key."""

import pytest
import torch
from torch import Tensor

from protocon.augment import CentreView, PixelView, RandAugmentView, RandomCropFlip, SimCLRView, View, WeakView
from protocon.augment.batches import FLOAT_BLOCK, blocks, sort_groups
from protocon.errors import DataError
from tests.augment.samples import digits, photos, some_keys

VIEWS: dict[str, PixelView | SimCLRView] = {
    "weak": WeakView(flip=True),
    "crop": RandomCropFlip(20),
    "centre": CentreView(20),
    "randaugment": RandAugmentView(WeakView(flip=True), probability=0.9),
    "randaugment-crop": RandAugmentView(RandomCropFlip(20)),
    "randaugment-alone": RandAugmentView(ops=3),
    "simclr": SimCLRView(20, blur=0.8),
}
IMAGES = {
    "photo": photos(50, 32),
    "photo-odd": photos(50, 19, 27),
    "digit-8": digits(50),
    "digit-16": digits(50, 16),
}
every_view = pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
every_kind = pytest.mark.parametrize("images", IMAGES.values(), ids=IMAGES)


@every_view
@every_kind
def test_view_is_float_in_range_and_channels_last(view: PixelView | SimCLRView, images: Tensor) -> None:
    before = images.clone()
    result = view(images, some_keys(50))
    size = (20, 20) if "size=20" in repr(view) else tuple(images.shape[2:])
    if not isinstance(view, SimCLRView):
        assert view.output_size(*images.shape[2:]) == size
    assert result.shape == (50, images.shape[1], *size)
    assert result.dtype == torch.float32
    assert result.is_contiguous(memory_format=torch.channels_last)
    assert result.min() >= 0.0
    assert 0.5 < result.max() <= 1.0
    assert torch.equal(images, before)


@every_view
@every_kind
def test_view_of_an_image_is_the_same_in_any_batch(view: View, images: Tensor) -> None:
    keys = some_keys(50)
    together = view(images, keys)
    for row in (0, 7, 31, 49):
        assert torch.equal(view(images[row : row + 1], keys[row : row + 1])[0], together[row])
    shuffled = torch.arange(50).flip(0)[:33]
    assert torch.equal(view(images[shuffled], keys[shuffled]), together[shuffled])


@every_view
def test_view_does_not_depend_on_the_layout_of_the_input(view: View) -> None:
    images, keys = photos(6, 32), some_keys(6)
    other = images.contiguous(memory_format=torch.channels_last)
    assert torch.equal(view(images, keys), view(other, keys))


@every_view
def test_same_key_same_view_and_another_key_another(view: View) -> None:
    images = photos(50, 32)
    first = view(images, some_keys(50))
    assert torch.equal(first, view(images, some_keys(50)))
    if not isinstance(view, CentreView):
        differ = (first != view(images, some_keys(50, seed=1))).flatten(1).any(dim=1)
        assert differ.float().mean() > 0.9


@pytest.mark.parametrize("name", ["crop", "simclr", "randaugment"])
def test_view_does_not_depend_on_the_blocks(name: str) -> None:
    count = FLOAT_BLOCK // (96 * 96) + 3
    images, keys = photos(count, 96), some_keys(count)
    view = VIEWS[name]
    assert torch.equal(view(images, keys)[-6:], view(images[-6:], keys[-6:]))


@pytest.mark.parametrize("name", ["randaugment-crop", "simclr"])
def test_view_does_not_depend_on_the_number_of_threads(name: str) -> None:
    images, keys = photos(12, 96), some_keys(12)
    view = VIEWS[name]
    alone = view(images, keys)
    torch.set_num_threads(2)
    try:
        assert torch.equal(view(images, keys), alone)
    finally:
        torch.set_num_threads(1)


@every_view
def test_no_images_give_no_views(view: View) -> None:
    assert len(view(photos(1, 32)[:0], some_keys(0))) == 0


@every_view
def test_wrong_input_is_refused(view: View) -> None:
    images, keys = photos(3, 16), some_keys(3)
    with pytest.raises(DataError, match="uint8"):
        view(images.float(), keys)
    with pytest.raises(DataError, match="uint8"):
        view(images[0], keys)
    with pytest.raises(DataError, match="uint8"):
        view(images[:, :2], keys)
    with pytest.raises(DataError, match="one int64 key"):
        view(images, keys[:2])
    with pytest.raises(DataError, match="one int64 key"):
        view(images, keys.float())


def test_blocks_cover_everything_once() -> None:
    for count, pixels, limit in ((10, 100, 250), (3, 500, 100), (0, 10, 10), (7, 1, 100)):
        covered = [row for block in blocks(count, pixels, limit) for row in range(block.start, block.stop)]
        assert covered == list(range(count))
        assert all((block.stop - block.start) * pixels <= max(limit, pixels) for block in blocks(count, pixels, limit))


def test_groups_are_sorted_and_counted() -> None:
    order, sizes = sort_groups(torch.tensor([2, -1, 0, 2, -1]), 3)
    assert order.tolist() == [1, 4, 2, 0, 3]
    assert sizes == [2, 1, 0, 2]
