"""An image is encoded once: other sets, and other commands, find its features."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from rich.console import Console
from torch import Tensor

from protocon.augment.clean import CLEAN
from protocon.data.imageset import ImageSet
from protocon.engine.setup.encode import cached_views
from protocon.engine.setup.view_factory import MIRRORED
from protocon.estimator.classifier import ProtoConClassifier
from protocon.features.extract import FrozenEncoder, View, Way, feature_table
from protocon.labeller.photos import Photos
from protocon.labeller.server import _encoder
from protocon.labeller.sight import Sight
from protocon.picking.folder_features import encode_folder
from protocon.settings.config import build_config
from tests.features.tiny import NAME, PROBE, SIDE, Tally, save_weights, tiny_encoder, tiny_images

QUIET = Console(quiet=True)
BOTH: list[View] = [CLEAN, MIRRORED]


def features(cache: Path, encoder: FrozenEncoder, images: ImageSet, views: list[View] = BOTH) -> Tensor:
    return cached_views(images, encoder, views, cache=cache, console=QUIET).tensor


def test_the_same_images_in_another_set_are_not_encoded_again(tmp_path: Path) -> None:
    encoder, counting = tiny_encoder()
    first = features(tmp_path, encoder, tiny_images(300)).clone()
    counting.tally.images = 0
    chosen = np.random.default_rng(0).permutation(300)[:270]
    again = features(tmp_path, encoder, tiny_images(300).subset(chosen))
    assert counting.tally.images == 0
    assert torch.equal(again, first[torch.from_numpy(chosen)])


def test_new_images_and_new_views_are_computed_and_nothing_else(tmp_path: Path) -> None:
    encoder, counting = tiny_encoder()
    features(tmp_path, encoder, tiny_images(20), BOTH)
    more = tiny_images(60)
    alone = features(tmp_path / "alone", *_tiny(), more)
    counting.tally.images = 0
    # The first 20 of 60 are other pixels than those of a set of 20: only those that are equal are known.
    known = {row.numpy().tobytes() for row in tiny_images(20).tensor}
    fresh = sum(row.numpy().tobytes() not in known for row in more.tensor)
    found = features(tmp_path, encoder, more)
    assert 0 < fresh < 60
    assert counting.tally.images == 2 * fresh
    torch.testing.assert_close(found.float(), alone.float(), rtol=2e-3, atol=2e-3)


def _tiny() -> tuple[FrozenEncoder]:
    return (tiny_encoder()[0],)


def test_views_with_draws_depend_on_the_place_and_are_not_shared(tmp_path: Path) -> None:
    from tests.features.tiny import VIEWS

    encoder, counting = tiny_encoder()
    features(tmp_path, encoder, tiny_images(), list(VIEWS))
    counting.tally.images = 0
    features(tmp_path, encoder, tiny_images().subset(np.arange(39, -1, -1)), list(VIEWS))
    assert counting.tally.images == 2 * 40  # not the clean view


@pytest.mark.parametrize("change", ["weights", "mean", "precision", "damage"])
def test_rows_of_another_encoder_less_precise_ones_and_damaged_ones_are_not_taken(tmp_path: Path, change: str) -> None:
    encoder, counting = tiny_encoder()
    features(tmp_path, encoder, tiny_images())
    views = BOTH
    if change == "weights":
        encoder, counting = tiny_encoder(seed=1)
    elif change == "mean":
        encoder = replace(encoder, mean=encoder.mean + 0.1)
    elif change == "precision":
        views = [CLEAN]  # kept in full precision
    else:
        file = feature_table(tiny_images(), encoder, BOTH, seed=0, cache=tmp_path).file
        raw = bytearray(file.read_bytes())
        raw[-3] ^= 64
        file.write_bytes(raw)
    counting.tally.images = 0
    features(tmp_path, encoder, tiny_images().subset(np.arange(39, -1, -1)), views)
    probe = PROBE if change in ("weights", "mean") else 0  # of an encoder that was not used before
    assert counting.tally.images == 40 * len(views) + probe


@pytest.fixture
def encoded(monkeypatch: pytest.MonkeyPatch) -> Tally:
    """How many images any encoder was asked for while tables were filled."""
    tally, usual = Tally(), FrozenEncoder.fastest

    def counted(encoder: FrozenEncoder, shape: tuple[int, ...]) -> Way:
        way = usual(encoder, shape)

        def count(images: Tensor) -> Tensor:
            tally.images += len(images)
            return way.forward(images)

        return replace(way, forward=count)

    monkeypatch.setattr(FrozenEncoder, "fastest", counted)
    return tally


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """24 noisy pictures, bright or dark, and an encoder's weights."""
    (tmp_path / "photos").mkdir()
    generator = np.random.default_rng(0)
    for number in range(24):
        pixels = generator.integers(0, 100, (SIDE, SIDE, 3)) + 150 * (number % 2)
        Image.fromarray(pixels.astype(np.uint8)).save(tmp_path / "photos" / f"{number:02}.png")
    save_weights(tmp_path / "weights.safetensors")
    return tmp_path


def _settings(place: Path) -> dict[str, object]:
    return {
        "network.encoder": NAME,
        "network.weights": str(place / "weights.safetensors"),
        "data.image_size": SIDE,
        "run.cache": str(place / "cache"),
    }


def _pick(place: Path) -> np.ndarray:
    settings = {"data": {"name": "folder", "root": place / "photos"}, "network": {"frozen": True}}
    given = [f"{key}={value}" for key, value in _settings(place).items()]
    return encode_folder(build_config(settings=settings, overrides=given), QUIET).features


def _label(place: Path) -> dict[str, np.ndarray]:
    """Features by file, as `protocon label` gets them."""
    photos = Photos(place / "photos")
    make, size = _encoder(photos, [f"{key}={value}" for key, value in _settings(place).items()])
    found: dict[str, np.ndarray] = {}

    def deliver(numbers: np.ndarray, rows: np.ndarray) -> None:
        found.update((photos.files[number].path, row) for number, row in zip(numbers, rows, strict=True))

    Sight(photos, make, image_size=size, cache=place / "cache").look(deliver)
    return found


def _classifier(place: Path) -> ProtoConClassifier:
    paths = sorted((place / "photos").glob("*.png"), reverse=True)
    labels = [int(path.stem) % 2 if int(path.stem) < 8 else -1 for path in paths]
    settings = {**_settings(place), "network.frozen": True}
    settings.pop("data.image_size")
    return ProtoConClassifier("protocon-frozen", epochs=1, image_size=SIDE, settings=settings).fit(paths, labels)


def test_what_pick_has_encoded_label_and_the_classifier_find(place: Path, encoded: Tally) -> None:
    picked = _pick(place)
    assert encoded.images == 2 * 24  # each image and its mirror image, which `train` looks at
    found = _label(place)
    _classifier(place)
    assert encoded.images == 2 * 24
    shutil.rmtree(place / "cache")
    own = _label(place)
    assert encoded.images == 3 * 24
    names = [f"{number:02}.png" for number in range(24)]
    clean = np.stack([own[name] for name in names])
    # Rows are kept in half precision.
    np.testing.assert_allclose(np.stack([found[name] for name in names]), clean, rtol=2e-3, atol=1e-5)
    assert not np.allclose(picked, clean, rtol=1e-2, atol=1e-3)  # `pick` sees the mirror images too


def test_what_label_has_encoded_the_classifier_and_pick_find(place: Path, encoded: Tally) -> None:
    _label(place)
    assert encoded.images == 24
    _classifier(place)
    assert encoded.images == 2 * 24  # mirror images are new
    _pick(place)
    assert encoded.images == 2 * 24
