"""Shares of colours, against a slow count of pixels."""

import numpy as np
import pytest
import torch

from protocon.base.parts import Part, look
from protocon.errors import ConfigError
from protocon.networks.colours import COUNT, REGIONS, SHADES, ColourShares, WithColours, regions
from protocon.networks.encoders import build_encoder

MEAN, STD = (0.5, 0.4, 0.3), (0.5, 0.2, 0.25)
SCALES = (
    (np.array([1, 1, 1]) / 3, 0.0, 1.0),  # brightness
    (np.array([1, -1, 0]), -0.4, 0.4),  # red against green
    (np.array([1, 1, -2]) / 2, -0.5, 0.5),  # yellow against blue
)


def normalised(pixels: np.ndarray) -> torch.Tensor:
    values = (pixels - np.array(MEAN)[:, None, None]) / np.array(STD)[:, None, None]
    return torch.from_numpy(values).float()


def region_of(row: int, column: int, high: int, wide: int) -> int:
    down, across = 2 * (row + 0.5) / high - 1, 2 * (column + 0.5) / wide - 1
    if abs(down) < 0.5 and abs(across) < 0.5:
        return 0
    return 1 if down <= -1 / 3 else 3 if down >= 1 / 3 else 2


def counted(image: np.ndarray, factor: int) -> np.ndarray:
    """(3, 8, 4), pixel by pixel."""
    high, wide = image.shape[1] // factor, image.shape[2] // factor
    found, sizes = np.zeros((len(SCALES), SHADES, REGIONS)), np.zeros(REGIONS)
    for row in range(high):
        for column in range(wide):
            block = image[:, row * factor : (row + 1) * factor, column * factor : (column + 1) * factor]
            region = region_of(row, column, high, wide)
            sizes[region] += 1
            for scale, (weights, low, top) in enumerate(SCALES):
                place = np.clip((weights @ block.mean((1, 2)) - low) / (top - low), 0, 1) * (SHADES - 1)
                below = min(int(place), SHADES - 2)
                found[scale, below, region] += 1 - (place - below)
                found[scale, below + 1, region] += place - below
    return found / sizes


@pytest.mark.parametrize(("high", "wide", "factor"), [(20, 20, 1), (96, 96, 2), (150, 144, 3)])
def test_shares_are_those_of_a_count_pixel_by_pixel(high: int, wide: int, factor: int) -> None:
    images = np.random.default_rng(0).random((2, 3, high, wide)) ** np.array([1, 2, 0.5])[:, None, None]
    found = ColourShares(MEAN, STD)(normalised(images)).numpy().reshape(2, len(SCALES), SHADES, REGIONS)
    for one, image in zip(found, images, strict=True):
        np.testing.assert_allclose(one, counted(image, factor), atol=2e-5)
        np.testing.assert_allclose(one.sum(1), 1, atol=1e-5)


def test_a_mirror_image_has_the_same_colours_and_one_upside_down_has_not() -> None:
    image = normalised(np.random.default_rng(1).random((1, 3, 48, 48)) * np.linspace(0, 1, 48)[:, None])
    shares = ColourShares(MEAN, STD)
    torch.testing.assert_close(shares(image.flip(-1)), shares(image))
    assert (shares(image.flip(-2)) - shares(image)).abs().max() > 0.2


def test_colours_tell_apart_what_has_the_same_shapes() -> None:
    grey = np.full((1, 3, 48, 48), 0.5)
    red = grey + np.array([0.2, -0.1, -0.1])[:, None, None]
    first, second = (ColourShares(MEAN, STD)(normalised(image)).view(3, SHADES, REGIONS) for image in (grey, red))
    torch.testing.assert_close(first[0], second[0])  # equally bright
    assert (first[1:] - second[1:]).abs().max() > 0.5


@pytest.mark.parametrize("side", [1, 2, 3, 5])
def test_very_small_images_have_all_regions(side: int) -> None:
    np.testing.assert_allclose(regions(side, side).sum(0), 1, rtol=1e-6)


def test_they_stand_behind_the_encoders_own_features() -> None:
    encoder = build_encoder("tf_efficientnet_lite0", input_shape=(3, 64, 64), pooled_blocks=2, frozen=True)
    wide = build_encoder("tf_efficientnet_lite0", input_shape=(3, 64, 64), pooled_blocks=2, colours=True, frozen=True)
    assert isinstance(wide.module, WithColours)
    assert wide.parts == (*encoder.parts, Part(COUNT, "colours"))
    assert wide.features == encoder.features + COUNT
    images = torch.rand(2, 3, 64, 64, generator=torch.Generator().manual_seed(0)) * 2 - 1
    with torch.no_grad():
        wide.module.eval()
        found, own = wide.module(images), wide.module.backbone(images)
    torch.testing.assert_close(found[:, : encoder.features], own)
    torch.testing.assert_close(found[:, encoder.features :], ColourShares((0.5,) * 3, (0.5,) * 3)(images))


def test_an_encoder_with_one_look_can_have_them_too() -> None:
    wide = WithColours(torch.nn.Flatten(), look(12), mean=MEAN, std=STD)
    assert wide(torch.zeros(1, 3, 2, 2)).shape == (1, 12 + COUNT)


@pytest.mark.parametrize(("name", "channels", "why"), [("tf_efficientnet_lite0", 1, "1 channels"), ("wrn-10-1", 3, "")])
def test_grey_images_and_random_weights_are_refused(name: str, channels: int, why: str) -> None:
    with pytest.raises(ConfigError, match=rf"network.colour_shares=true is for images in colour .*{why}"):
        build_encoder(name, input_shape=(channels, 32, 32), colours=True, frozen=True)
