"""Solarisation against PIL's, on the images that draw it."""

import numpy as np
import pytest
import torch
from PIL import Image, ImageOps

from protocon.augment.clean import CLEAN
from protocon.augment.solarised import SolarisedView
from protocon.errors import ConfigError
from tests.augment.samples import photos, some_keys


def test_all_or_none_as_pil_does_it() -> None:
    images, keys = photos(4, 24), some_keys(4)
    never, always = (SolarisedView(CLEAN, chance)(images, keys) for chance in (0.0, 1.0))
    torch.testing.assert_close(never, CLEAN(images, keys), rtol=0, atol=0)
    for image, ours in zip(images, always, strict=True):
        expected = np.asarray(ImageOps.solarize(Image.fromarray(image.permute(1, 2, 0).numpy()), 128))
        torch.testing.assert_close(ours, torch.from_numpy(expected.copy()).permute(2, 0, 1) / 255.0, rtol=0, atol=1e-6)


def test_a_share_of_the_images_draws_it_each_by_its_key_alone() -> None:
    images = torch.full((2000, 1, 2, 2), 255, dtype=torch.uint8)
    keys = some_keys(2000)
    seen = SolarisedView(CLEAN, 0.2)(images, keys)
    drawn = seen.flatten(1).amax(1) == 0
    assert 340 < int(drawn.sum()) < 460
    again = SolarisedView(CLEAN, 0.2)(images[:7], keys[100:107])
    assert torch.equal(again, seen[100:107])


def test_a_probability_is_one() -> None:
    with pytest.raises(ConfigError, match=r"in \[0, 1\]; got 2"):
        SolarisedView(CLEAN, 2)
