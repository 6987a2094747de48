"""Features are computed once, are the encoder's own, and are known by everything that they depend on."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from rich.console import Console
from torch import Tensor

from protocon.augment.clean import CLEAN
from protocon.augment.views import WeakView
from protocon.base.parts import look
from protocon.data.imageset import ArrayImages
from protocon.engine.setup.encode import cached_views
from protocon.errors import ConfigError
from protocon.features.extract import FrozenEncoder, View, feature_table, fill
from tests.features.tiny import PROBE, VIEWS, tiny_encoder, tiny_images

QUIET = Console(quiet=True)


def features(cache: Path, encoder: FrozenEncoder, images: ArrayImages, views: list[View] = VIEWS) -> Tensor:
    return cached_views(images, encoder, views, cache=cache, console=QUIET).tensor


def test_features_are_what_the_encoder_says_of_each_view(tmp_path: Path) -> None:
    images = tiny_images()
    encoder, counting = tiny_encoder()
    found = features(tmp_path, encoder, images)
    pixels = images.tensor.float() / 255
    with torch.no_grad():
        clean = counting.module((pixels - 0.5) / 0.5)
    assert found.shape == (40, 3, encoder.features)
    assert found.dtype == torch.float16
    torch.testing.assert_close(found[:, 0].float(), clean, rtol=2e-3, atol=2e-3)
    assert not torch.equal(found[:, 1], found[:, 0])
    assert not torch.equal(found[:, 1], found[:, 2])  # two weak views are two draws


def test_a_single_view_is_kept_in_full_precision(tmp_path: Path) -> None:
    encoder, counting = tiny_encoder()
    images = tiny_images()
    found = features(tmp_path, encoder, images, [CLEAN])
    with torch.no_grad():
        clean = counting.module((images.tensor.float() / 255 - 0.5) / 0.5)
    torch.testing.assert_close(found[:, 0], clean)


def test_a_second_time_gives_the_same_bits_without_the_encoder(tmp_path: Path) -> None:
    encoder, counting = tiny_encoder()
    first = features(tmp_path, encoder, tiny_images()).clone()
    assert counting.tally.images == 40 * len(VIEWS) + PROBE
    second = features(tmp_path, encoder, tiny_images())
    assert counting.tally.images == 40 * len(VIEWS) + PROBE
    assert torch.equal(first, second)


def test_more_labels_need_no_new_features(tmp_path: Path) -> None:
    encoder, counting = tiny_encoder()
    images = tiny_images()
    features(tmp_path, encoder, images)
    relabelled = ArrayImages(images.tensor, np.zeros(40, dtype=np.int64), ["only"], ids=map(str, range(100, 140)))
    before = counting.tally.images
    features(tmp_path, encoder, relabelled)
    assert counting.tally.images == before


def changed_pixel() -> ArrayImages:
    images = tiny_images()
    images.tensor[17, 0, 3, 3] ^= 1
    return images


@pytest.mark.parametrize(
    "what", ["pixel", "size", "order", "weights", "name", "views", "view settings", "mean", "parts", "seed"]
)
def test_whatever_features_depend_on_gives_another_key(tmp_path: Path, what: str) -> None:
    encoder, _ = tiny_encoder()
    images, views, seed = tiny_images(), list(VIEWS), 0
    usual = feature_table(images, encoder, views, seed=0, cache=tmp_path).folder
    if what == "pixel":
        images = changed_pixel()
    elif what == "size":
        images = tiny_images(side=16)
    elif what == "order":
        images = tiny_images().subset(np.arange(39, -1, -1))
    elif what in ("weights", "name"):
        encoder, _ = tiny_encoder(seed=1) if what == "weights" else tiny_encoder(name="another")
    elif what == "mean":
        encoder = FrozenEncoder(encoder.name, encoder.module, encoder.features, encoder.mean + 0.1, encoder.std)
    elif what == "parts":  # the same weights, of which other blocks are pooled
        encoder = replace(encoder, parts=look(encoder.features - 8, 8))
    elif what == "seed":
        seed = 1
    else:
        views = views[:2] if what == "views" else [CLEAN, WeakView(flip=False), WeakView(flip=True)]
    other = feature_table(images, encoder, views, seed=seed, cache=tmp_path).folder
    assert other != usual


def test_an_interrupted_computation_goes_on_and_leaves_the_same_bits(tmp_path: Path) -> None:
    images = tiny_images(600)  # three chunks of 256
    encoder, counting = tiny_encoder()
    whole = features(tmp_path / "whole", encoder, images, [CLEAN]).clone()

    class StoppedError(Exception):
        pass

    def stop(_: int) -> None:
        raise StoppedError

    table = feature_table(images, encoder, [CLEAN], seed=0, cache=tmp_path / "part")
    with pytest.raises(StoppedError):
        fill(table, images, encoder, [CLEAN], seed=0, chunks=table.missing(), done=stop)
    counting.tally.images = 0
    resumed = features(tmp_path / "part", encoder, images, [CLEAN])
    assert counting.tally.images == 600 - 256
    assert torch.equal(whole, resumed)


def test_a_damaged_chunk_is_noticed_and_computed_again(tmp_path: Path) -> None:
    images = tiny_images(600)
    encoder, counting = tiny_encoder()
    whole = features(tmp_path, encoder, images, [CLEAN]).clone()
    file = feature_table(images, encoder, [CLEAN], seed=0, cache=tmp_path).file
    raw = bytearray(file.read_bytes())
    raw[-3] ^= 64
    file.write_bytes(raw)
    counting.tally.images = 0
    assert torch.equal(features(tmp_path, encoder, images, [CLEAN]), whole)
    assert counting.tally.images == 600 - 512


def test_features_that_are_no_numbers_are_refused(tmp_path: Path) -> None:
    encoder, counting = tiny_encoder()
    with torch.no_grad():
        for parameter in counting.module.parameters():
            parameter.fill_(float("nan"))
    with pytest.raises(ConfigError, match="weights"):
        features(tmp_path, encoder, tiny_images(), [CLEAN])
