"""SimCLR's view against torchvision's functions and PIL's HSV, on real images."""

import pytest
import torch
import torchvision.transforms.v2.functional as TF
from scipy.stats import binomtest, kstest
from torch import Tensor

from benchmarks.augment import pil_hue
from protocon.augment import RandomCropFlip, SimCLRView
from protocon.augment.blur import gaussian_blur, visible_radius
from protocon.augment.jitter import (
    BRIGHTNESS,
    CONTRAST,
    HUE,
    SATURATION,
    adjust,
    adjustment,
    jitter,
    shift_hue,
    to_grey,
)
from protocon.augment.resized_crop import resample
from protocon.errors import ConfigError
from tests.augment.samples import digits, each_by_pil, photos, some_keys

ADJUSTMENTS = {
    BRIGHTNESS: TF.adjust_brightness,
    CONTRAST: TF.adjust_contrast,
    SATURATION: TF.adjust_saturation,
    HUE: TF.adjust_hue,
}


def unit(images: Tensor) -> Tensor:
    return images / 255.0


def cropped(images: Tensor, keys: Tensor, size: int) -> Tensor:
    """The crops that SimCLR's view begins with."""
    view = RandomCropFlip(size, scale=(0.08, 1.0))
    return resample(images, *view.taps(keys, images.shape[2], images.shape[3]))


# torchvision weighs red by 0.2989 where PIL and we take 0.299.
OTHER_RED = 2.5e-4


def same(ours: Tensor, expected: Tensor, tolerance: float = 1e-5) -> None:
    torch.testing.assert_close(ours, expected, rtol=0, atol=tolerance)


@pytest.mark.parametrize("kind", [BRIGHTNESS, CONTRAST, SATURATION])
@pytest.mark.parametrize("images", [photos(8, 32), photos(3, 224), digits(8)], ids=["32", "224", "digit"])
def test_adjustments_are_torchvisions(kind: int, images: Tensor) -> None:
    factors = torch.linspace(0.0, 1.9, len(images))
    ours = adjust(unit(images), adjustment(torch.full((len(images),), kind), factors))
    for image, factor, result in zip(unit(images), factors.tolist(), ours, strict=True):
        same(result, ADJUSTMENTS[kind](image, factor), 1e-6 if kind == BRIGHTNESS else OTHER_RED)


def test_images_of_a_batch_are_adjusted_each_in_its_way() -> None:
    images = unit(photos(8, 32))
    kinds = torch.tensor([BRIGHTNESS, CONTRAST, SATURATION, HUE] * 2)
    ours = adjust(images.clone(), adjustment(kinds, torch.full((8,), 1.4)))
    for image, kind, result in zip(images, kinds.tolist(), ours, strict=True):
        same(result, image if kind == HUE else ADJUSTMENTS[kind](image, 1.4), OTHER_RED)


@pytest.mark.parametrize("size", [32, 99])
def test_hue_is_torchvisions(size: int) -> None:
    images = unit(photos(8, size))
    shifts = torch.tensor([-0.5, -0.2, -0.1, -0.01, 0.0, 0.05, 0.2, 0.5])
    ours = shift_hue(images.clone(), shifts)
    for image, shift, result in zip(images, shifts.tolist(), ours, strict=True):
        same(result, TF.adjust_hue(image, shift))
    same(ours[4], images[4])


def test_hue_is_pils_but_for_its_eight_bits() -> None:
    images, shifts = photos(8, 64), torch.linspace(-0.2, 0.2, 8)
    apart = shift_hue(unit(images), shifts) - unit(each_by_pil(images, shifts, pil_hue))
    # PIL keeps hue and saturation in 256 steps each: of a bright colour that is up to 6 levels.
    assert apart.abs().max() * 255 < 8
    assert apart.abs().mean() * 255 < 1.5


def test_hue_of_pure_colours_and_greys() -> None:
    colours = torch.tensor([[1, 0, 0], [1, 1, 0], [0, 1, 0], [0, 1, 1], [0, 0, 1], [1, 0, 1]]).float()
    shifted = shift_hue(colours.clone()[:, :, None, None], torch.full((6,), 1 / 6))[:, :, 0, 0]
    same(shifted, colours.roll(-1, 0))
    greys = torch.tensor([0.0, 0.5, 1.0]).view(3, 1, 1, 1).expand(3, 3, 1, 1).clone()
    same(shift_hue(greys.clone(), torch.full((3,), 0.3)), greys)


def test_jitter_respects_each_images_order() -> None:
    images = unit(photos(24, 32))
    orders = torch.stack([torch.randperm(4, generator=torch.Generator().manual_seed(n)) for n in range(24)])
    factors = torch.tensor([1.6, 0.4, 1.8, 0.15]).expand(24, 4)
    before = images.clone()
    ours = jitter(images, factors, orders)
    assert torch.equal(images, before)
    for image, order, result in zip(images, orders.tolist(), ours, strict=True):
        for kind in order:
            image = ADJUSTMENTS[kind](image, factors[0, kind].item())
        same(result, image, 2 * OTHER_RED)


@pytest.mark.parametrize("size", [32, 224])
def test_blur_is_torchvisions(size: int) -> None:
    images = unit(photos(6, size))
    sigmas = torch.tensor([0.1, 0.25, 0.7, 1.3, 1.9, 2.0])
    kernel = round(0.1 * size)
    sizes = torch.bincount(visible_radius(sigmas, kernel=kernel)).tolist()[1:]
    ours = gaussian_blur(images, sigmas, sizes)
    taps = 2 * (kernel // 2) + 1
    for image, sigma, result in zip(images, sigmas.tolist(), ours, strict=True):
        same(result, TF.gaussian_blur(image, [taps, taps], [sigma, sigma]), 0.15 / 255)


def test_grey_takes_all_colour() -> None:
    images = unit(photos(4, 32))
    same(to_grey(images.clone()), TF.rgb_to_grayscale(images, num_output_channels=3), OTHER_RED)


def test_view_is_the_chain_of_its_draws() -> None:
    images, keys = photos(30, 64), some_keys(30)
    view = SimCLRView(48, strength=0.7)
    draws = view.draw(keys)
    crops = cropped(images, keys, 48)
    for row, (image, result) in enumerate(zip(crops, view(images, keys), strict=True)):
        if draws.jittered[row]:
            for kind in draws.turns[row].tolist():
                image = ADJUSTMENTS[kind](image, draws.factors[row, kind].item())
        if draws.greyed[row]:
            image = TF.rgb_to_grayscale(image, num_output_channels=3)
        if draws.blurred[row]:
            image = TF.gaussian_blur(image, [5, 5], [draws.sigma[row].item()] * 2)
        same(result, image, 4 * OTHER_RED)


def test_draws_have_their_rates_and_ranges() -> None:
    draws = SimCLRView(32, strength=0.5, jitter=0.6, grey=0.1, blur=0.3).draw(some_keys(20_000))
    for drawn, rate in ((draws.jittered, 0.6), (draws.greyed, 0.1), (draws.blurred, 0.3)):
        assert binomtest(int(drawn.sum()), 20_000, rate).pvalue > 1e-4
    for kind in (BRIGHTNESS, CONTRAST, SATURATION):
        assert kstest(((draws.factors[:, kind] - 0.6) / 0.8).numpy(), "uniform").pvalue > 1e-4
    assert kstest(((draws.factors[:, HUE] + 0.1) / 0.2).numpy(), "uniform").pvalue > 1e-4
    assert kstest(((draws.sigma - 0.1) / 1.9).numpy(), "uniform").pvalue > 1e-4
    orders = torch.bincount((draws.turns * torch.tensor([64, 16, 4, 1])).sum(dim=1))
    counts = orders[orders > 0].tolist()
    assert len(counts) == 24
    assert all(binomtest(count, 20_000, 1 / 24).pvalue > 1e-5 for count in counts)


def test_nothing_but_the_crop_is_left_when_all_is_switched_off() -> None:
    images, keys = photos(10, 40), some_keys(10)
    plain = SimCLRView(32, jitter=0.0, grey=0.0, blur=0.0)(images, keys)
    same(plain, cropped(images, keys, 32), 1e-6)
    still = SimCLRView(32, strength=0.0, jitter=1.0, grey=0.0, blur=0.0)(images, keys)
    same(still, plain, 1e-5)


def test_strength_beyond_one_never_inverts() -> None:
    assert SimCLRView(32, strength=2.0).draw(some_keys(2000)).factors[:, :HUE].min() >= 0.0


@pytest.mark.parametrize("bad", [{"strength": -1.0}, {"strength": 3.0}, {"jitter": 1.1}, {"grey": -0.1}, {"blur": 2.0}])
def test_impossible_settings_are_refused(bad: dict[str, float]) -> None:
    with pytest.raises(ConfigError):
        SimCLRView(32, **bad)  # type: ignore[arg-type]
