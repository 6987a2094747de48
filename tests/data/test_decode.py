import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from protocon.base.draws import permutation
from protocon.data.files.decode import decode_image, decode_with_facts, image_dimensions
from protocon.data.files.resize_arrays import resize_images
from protocon.errors import DataError
from tests.data.images import gradient


def encode(image: Image.Image, kind: str = "PNG", **options: Any) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def decode(data: bytes, size: int = 8, **options: Any) -> np.ndarray:
    """Decoded pixels as (H, W, C)."""
    return decode_image(io.BytesIO(data), size=size, name="some.png", **options).permute(1, 2, 0).numpy()


def test_rgb_keeps_its_pixels_and_channel_order() -> None:
    np.testing.assert_array_equal(decode(encode(Image.fromarray(gradient()))), gradient())


def test_the_result_is_a_contiguous_uint8_tensor() -> None:
    image = decode_image(io.BytesIO(encode(Image.fromarray(gradient()))), size=4, name="x")
    assert (image.shape, image.dtype, image.is_contiguous()) == ((3, 4, 4), torch.uint8, True)


def test_grey_is_repeated_over_three_channels_or_kept_as_one() -> None:
    plane = gradient()[..., 0]
    data = encode(Image.fromarray(plane))
    np.testing.assert_array_equal(decode(data), np.stack([plane] * 3, axis=2))
    np.testing.assert_array_equal(decode(data, grey=True)[..., 0], plane)


def test_colour_to_grey_is_luma() -> None:
    red, green, blue = (c.astype(float) for c in np.moveaxis(gradient(), 2, 0))
    expected = 0.299 * red + 0.587 * green + 0.114 * blue
    got = decode(encode(Image.fromarray(gradient())), grey=True)[..., 0]
    assert np.abs(got - expected).max() <= 1


def test_rgba_is_laid_on_white() -> None:
    alpha = np.tile(np.array([0, 51, 128, 255], dtype=np.uint8), (8, 2))[..., None]
    got = decode(encode(Image.fromarray(np.concatenate([gradient(), alpha], axis=2))))
    weight = alpha / 255.0
    assert np.abs(got - (gradient() * weight + 255 * (1 - weight))).max() <= 1
    assert (got[:, 0] == 255).all()


def test_grey_with_alpha_is_laid_on_white() -> None:
    plane = np.full((8, 8), 100, dtype=np.uint8)
    alpha = np.zeros((8, 8), dtype=np.uint8)
    alpha[:, 4:] = 255
    image = Image.merge("LA", [Image.fromarray(plane), Image.fromarray(alpha)])
    got = decode(encode(image))
    assert (got[:, :4] == 255).all()
    assert (got[:, 4:] == 100).all()


def palette_image() -> Image.Image:
    image = Image.frombytes("P", (8, 8), bytes(np.tile(np.arange(8) % 3, 8).tolist()))
    image.putpalette([10, 20, 30, 200, 100, 50, 0, 255, 0])
    return image


def test_palette_images_get_their_colours() -> None:
    got = decode(encode(palette_image()))
    assert [tuple(map(int, pixel)) for pixel in got[0, :3]] == [(10, 20, 30), (200, 100, 50), (0, 255, 0)]


@pytest.mark.parametrize("transparency", [1, bytes([255, 0, 255])])
def test_transparent_palette_entries_are_white(transparency: int | bytes) -> None:
    got = decode(encode(palette_image(), transparency=transparency))
    assert [tuple(map(int, pixel)) for pixel in got[0, :3]] == [(10, 20, 30), (255, 255, 255), (0, 255, 0)]


def test_a_transparent_colour_of_an_rgb_image_is_white() -> None:
    picture = np.zeros((8, 8, 3), dtype=np.uint8)
    picture[:, 4:] = (1, 2, 3)
    got = decode(encode(Image.fromarray(picture), transparency=(1, 2, 3)))
    assert (got[:, :4] == 0).all()
    assert (got[:, 4:] == 255).all()


def test_one_bit_images_are_black_and_white() -> None:
    bits = np.tile(np.array([0, 255], dtype=np.uint8), (8, 4))
    np.testing.assert_array_equal(decode(encode(Image.fromarray(bits).convert("1")), grey=True)[..., 0], bits)


@pytest.mark.parametrize("kind", ["PNG", "TIFF"])
def test_sixteen_bit_grey_is_scaled_not_clipped(kind: str) -> None:
    values = np.tile(np.array([0, 256, 300, 4096, 32768, 60000, 65278, 65535], dtype=np.uint16), (8, 1))
    got = decode(encode(Image.fromarray(values), kind), grey=True)[..., 0]
    np.testing.assert_array_equal(got, np.rint(values / 257.0).astype(np.uint8))


def test_sixteen_bit_grey_pgm_is_scaled() -> None:
    values = np.tile(np.array([0, 257, 5000, 65535], dtype=">u2"), (8, 2))
    got = decode(b"P5 8 8 65535\n" + values.tobytes(), grey=True)[..., 0]
    np.testing.assert_array_equal(got, np.rint(values / 257.0).astype(np.uint8))


@pytest.mark.parametrize("kind", ["JPEG", "TIFF"])
def test_cmyk_becomes_rgb(kind: str) -> None:
    ink = np.zeros((8, 8, 4), dtype=np.uint8)
    ink[..., 0] = 255  # cyan
    options = {"quality": 100} if kind == "JPEG" else {}
    got = decode(encode(Image.frombytes("CMYK", (8, 8), ink.tobytes()), kind, **options))
    assert np.abs(got.astype(int) - [0, 255, 255]).max() <= 3


def test_of_an_animation_the_first_frame_counts() -> None:
    frames = [Image.fromarray(np.full((8, 8, 3), colour, dtype=np.uint8)) for colour in (0, 128, 255)]
    data = encode(frames[0], "GIF", save_all=True, append_images=frames[1:])
    assert Image.open(io.BytesIO(data)).n_frames == 3  # type: ignore[attr-defined]
    assert (decode(data) == 0).all()


# What a viewer shows for each EXIF orientation, in terms of the stored pixels.
UPRIGHT = {
    1: lambda a: a,
    2: lambda a: a[:, ::-1],
    3: lambda a: a[::-1, ::-1],
    4: lambda a: a[::-1],
    5: lambda a: a.swapaxes(0, 1),
    6: lambda a: np.rot90(a, -1),
    7: lambda a: a[::-1, ::-1].swapaxes(0, 1),
    8: lambda a: np.rot90(a, 1),
}


@pytest.mark.parametrize("kind", ["PNG", "TIFF"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_exif_rotation_is_applied(orientation: int, kind: str) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    stored = gradient(8, 8)
    got = decode(encode(Image.fromarray(stored), kind, exif=exif))
    np.testing.assert_array_equal(got, UPRIGHT[orientation](stored))


def test_exif_rotation_of_an_oblong_photo_crops_the_centre() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    stored = gradient(12, 8)
    got = decode(encode(Image.fromarray(stored), exif=exif))
    np.testing.assert_array_equal(got, np.rot90(stored[:, 2:10], -1))


def test_the_centre_is_cropped_along_the_long_side() -> None:
    np.testing.assert_array_equal(decode(encode(Image.fromarray(gradient(14, 8)))), gradient(14, 8)[:, 3:11])
    np.testing.assert_array_equal(decode(encode(Image.fromarray(gradient(8, 14)))), gradient(8, 14)[3:11])


def test_shrinking_averages_rather_than_picks_pixels() -> None:
    board = (np.indices((32, 32)).sum(axis=0) % 2 * 255).astype(np.uint8)
    got = decode(encode(Image.fromarray(board)), size=4, grey=True)
    assert np.abs(got.astype(int) - 127).max() <= 3


def test_large_jpegs_are_decoded_at_a_reduced_size_with_the_same_picture(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    y, x = np.mgrid[:800, :640]
    smooth = np.stack([x / 640 * 255, y / 800 * 255, np.full_like(x, 90.0)], axis=2).astype(np.uint8)
    data = encode(Image.fromarray(smooth), "JPEG", quality=95)
    loaded: list[tuple[int, int]] = []
    convert = Image.Image.resize

    def spy(image: Image.Image, *args: Any, **options: Any) -> Image.Image:
        loaded.append(image.size)
        return convert(image, *args, **options)

    monkeypatch.setattr(Image.Image, "resize", spy)
    got = decode(data, size=32)
    assert loaded == [(80, 100)]
    expected = convert(Image.fromarray(smooth[80:720]), (32, 32), Image.Resampling.BILINEAR)
    assert np.abs(got.astype(int) - np.asarray(expected)).max() <= 4


@pytest.mark.parametrize("size", [(40, 30), (30, 40), (48, 20)])
def test_a_squashed_image_keeps_what_lies_at_the_edges(size: tuple[int, int]) -> None:
    picture = np.full((size[1], size[0], 3), 200, dtype=np.uint8)
    picture[:, :3] = picture[:3] = 0  # along the left and the upper edge
    image = Image.fromarray(picture)
    squashed, cropped = (decode(encode(image), size=24, squash=squash) for squash in (True, False))
    assert np.array_equal(squashed, np.asarray(image.resize((24, 24), Image.Resampling.BILINEAR)))
    assert squashed[12, 0].max() < 60
    assert squashed[0, 12].max() < 60
    assert min(cropped[12, 0].min(), cropped[0, 12].min()) < 60 < max(cropped[12, 0].min(), cropped[0, 12].min())
    array = torch.from_numpy(picture).permute(2, 0, 1)[None]
    resized = resize_images(array, 24, squash=True)[0].permute(1, 2, 0).numpy()
    assert np.abs(resized.astype(int) - squashed).max() <= 1


def test_a_squashed_image_is_turned_as_the_camera_says() -> None:
    picture = np.random.default_rng(1).integers(80, 170, (20, 30, 3), dtype=np.uint8)
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned by 90 degrees
    turned = decode(encode(Image.fromarray(picture), exif=exif), size=12, squash=True)
    upright = decode(encode(Image.fromarray(np.rot90(picture, -1).copy())), size=12, squash=True)
    assert np.abs(turned.astype(int) - upright).max() <= 2


def test_small_images_are_enlarged_without_blur_and_others_as_ever() -> None:
    noise = Image.fromarray(np.random.default_rng(0).integers(80, 170, (10, 10, 3), dtype=np.uint8))
    bilinear, bicubic = Image.Resampling.BILINEAR, Image.Resampling.BICUBIC
    for size, filtered in ((20, bilinear), (21, bicubic)):
        got = decode(encode(noise), size=size)
        assert np.array_equal(got, np.asarray(noise.resize((size, size), filtered)))
        array = torch.from_numpy(np.array(noise)).permute(2, 0, 1)[None]
        assert np.abs(resize_images(array, size)[0].permute(1, 2, 0).numpy().astype(int) - got).max() <= 1


@pytest.mark.parametrize("size", [(600, 20), (20, 600)])
def test_very_oblong_jpegs_keep_enough_pixels(size: tuple[int, int]) -> None:
    got = decode(encode(Image.fromarray(gradient(*size)), "JPEG"), size=16)
    assert got.shape == (16, 16, 3)


def test_an_empty_file_is_named() -> None:
    with pytest.raises(DataError, match=r"some\.png is an empty file"):
        decode(b"")


def test_a_file_that_is_no_image_is_named() -> None:
    with pytest.raises(DataError, match=r"some\.png is not an image .* JPEG, PNG"):
        decode(b"<html>Not found</html>")


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "TIFF", "BMP", "WEBP"])
def test_a_truncated_file_is_named(kind: str) -> None:
    noise = (permutation(64 * 64 * 3, 1) % 256).astype(np.uint8).reshape(64, 64, 3)
    data = encode(Image.fromarray(noise), kind)
    with pytest.raises(DataError, match=r"some\.png"):
        decode(data[: len(data) // 2], size=64)


def test_postscript_is_never_handed_to_ghostscript() -> None:
    data = encode(Image.fromarray(gradient()), "EPS")
    with pytest.raises(DataError, match="not an image that can be read"):
        decode(data)


def test_too_many_pixels_are_refused_before_decoding(monkeypatch: pytest.MonkeyPatch) -> None:
    data = encode(Image.fromarray(gradient(20, 20)))
    monkeypatch.setattr(Image.Image, "load", lambda _: pytest.fail("decoded"))
    with pytest.raises(DataError, match=r"20 × 20 pixels, more than the limit of 399"):
        decode(data, max_pixels=399)


def test_an_image_that_pillow_calls_a_bomb_is_a_data_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
    with pytest.raises(DataError, match=r"some\.png has too many pixels"):
        decode(encode(Image.fromarray(gradient(20, 20))))


@pytest.mark.parametrize("mode", ["I", "F"])
def test_pixels_without_a_known_range_are_refused(mode: str) -> None:
    data = encode(Image.fromarray(gradient()[..., 0]).convert(mode), "TIFF")
    with pytest.raises(DataError, match="32-bit pixels, whose range is not known"):
        decode(data)


def test_unreadable_exif_does_not_cost_the_picture() -> None:
    data = encode(Image.fromarray(gradient()), exif=b"Exif\x00\x00nonsense")
    np.testing.assert_array_equal(decode(data), gradient())


def test_dimensions_come_from_the_header(tmp_path: Path) -> None:
    data = encode(Image.fromarray(gradient(14, 8)))
    assert image_dimensions(io.BytesIO(data[:60]), name="x") == (14, 8)
    with pytest.raises(DataError, match="empty"):
        image_dimensions(io.BytesIO(b""), name=str(tmp_path))


def test_a_huge_jpeg_is_decoded_at_a_fraction_of_its_size() -> None:
    data = encode(Image.new("L", (16_000, 12_000), 200), "JPEG", quality=30)
    pixels, facts = decode_with_facts(io.BytesIO(data), size=32, name="huge.jpg")
    assert (facts.width, facts.height, facts.format) == (16_000, 12_000, "JPEG")  # more than Pillow itself would open
    assert (pixels.float() - 200).abs().max() < 3
    with pytest.raises(DataError, match="16000 × 12000 pixels, more than the limit"):
        decode_with_facts(io.BytesIO(data), size=32, name="huge.jpg", max_pixels=1000)


def test_an_animation_counts_its_frames() -> None:
    frames = [Image.new("RGB", (9, 9), (value, 0, 0)) for value in (10, 200, 90)]
    data = encode(frames[0], "GIF", save_all=True, append_images=frames[1:])
    pixels, facts = decode_with_facts(io.BytesIO(data), size=9, name="a.gif")
    assert facts.frames == 3
    assert int(pixels[0].float().mean()) == 10
