import pickle
from pathlib import Path

import numpy as np
import pytest
import torch

from protocon.data.files.decode_all import Members
from protocon.data.files.digests import content_of
from protocon.data.files.resize_arrays import resize_images
from protocon.data.files.stores import FolderStore
from protocon.data.files.strings import StringTable
from protocon.data.imageset import ArrayImages, DataBundle, DataHints, FeatureArray, FileImages, ImageSet
from protocon.data.source_options import SourceOptions
from protocon.data.sources.listing import FileListing, make_bundle
from protocon.errors import DataError
from tests.data.images import gradient, save_png

NAMES = ("a", "b")


def arrays(count: int = 6, **options: object) -> ArrayImages:
    pixels = torch.arange(count * 12).reshape(count, 3, 2, 2).to(torch.uint8)
    return ArrayImages(pixels, np.arange(count) % 2, NAMES, **options)  # type: ignore[arg-type]


def files(tmp_path: Path, storage: str) -> ImageSet:
    store = FolderStore(tmp_path)
    for i in range(4):
        save_png(tmp_path / f"{i}.png", gradient(8, 8, shift=i))
    listing = FileListing("t", store, NAMES, Members(store.files(), np.array([0, 1, -1, 0])), None, [])
    return make_bundle(listing, SourceOptions(storage=storage)).train  # type: ignore[arg-type]


def test_reading_gives_rows_in_the_order_asked_for() -> None:
    images = arrays()
    torch.testing.assert_close(images.read(np.array([4, 1, 1])), images.tensor[[4, 1, 1]])
    assert (len(images), images.shape, images.nbytes) == (6, (3, 2, 2), 72)
    assert list(images.ids) == ["0", "1", "2", "3", "4", "5"]


def test_features_are_float32_rows() -> None:
    features = FeatureArray(np.arange(6, dtype=np.float64).reshape(3, 2), np.array([0, 1, -1]), NAMES)
    assert features.read(np.array([2])).tolist() == [[4.0, 5.0]]
    assert (features.read(np.array([0])).dtype, features.shape, features.nbytes) == (torch.float32, (2,), 24)


def test_files_are_decoded_on_reading(tmp_path: Path) -> None:
    images = files(tmp_path, "stream")
    assert isinstance(images, FileImages)
    got = images.read(np.array([3, 0]))
    np.testing.assert_array_equal(got[0].permute(1, 2, 0).numpy(), gradient(8, 8, shift=3))
    np.testing.assert_array_equal(got[1].permute(1, 2, 0).numpy(), gradient(8, 8, shift=0))


def test_a_file_set_survives_the_trip_to_a_worker(tmp_path: Path) -> None:
    images = files(tmp_path, "stream")
    twin = pickle.loads(pickle.dumps(images))
    assert torch.equal(twin.read(np.arange(4)), images.read(np.arange(4)))


def test_the_fingerprint_changes_with_everything_that_matters() -> None:
    base = arrays().fingerprint()
    assert arrays().fingerprint() == base
    other_pixels = arrays().tensor.clone()
    other_pixels[3, 0, 0, 0] += 1
    labels = np.arange(6) % 2
    changed = [
        ArrayImages(other_pixels, labels, NAMES),
        ArrayImages(arrays().tensor, 1 - labels, NAMES),
        ArrayImages(arrays().tensor, labels, ("a", "c")),
        arrays(ids=["0", "1", "2", "3", "4", "x"]),
        ArrayImages(arrays().tensor.reshape(6, 3, 1, 4), labels, NAMES),
        arrays(5),
    ]
    assert len({base, *(images.fingerprint() for images in changed)}) == 1 + len(changed)


def test_the_fingerprint_does_not_run_neighbouring_names_together() -> None:
    one, two = arrays(ids=["ab", "c", "2", "3", "4", "5"]), arrays(ids=["a", "bc", "2", "3", "4", "5"])
    assert one.fingerprint() != two.fingerprint()


def test_the_fingerprint_is_the_same_in_memory_streamed_and_resized(tmp_path: Path) -> None:
    streamed, held = files(tmp_path, "stream"), files(tmp_path, "memory")
    assert isinstance(held, ArrayImages)
    assert streamed.fingerprint() == held.fingerprint()
    pixels = arrays().tensor
    resized = ArrayImages(resize_images(pixels, 4), arrays().labels, NAMES, content=content_of(pixels))
    assert resized.fingerprint() == arrays().fingerprint()


def test_the_fingerprint_notices_a_changed_file(tmp_path: Path) -> None:
    before = files(tmp_path, "stream").fingerprint()
    size = (tmp_path / "2.png").stat().st_size
    save_png(tmp_path / "2.png", gradient(9, 9))
    assert (tmp_path / "2.png").stat().st_size == size  # so that only its bytes can tell
    store = FolderStore(tmp_path)
    listing = FileListing("t", store, NAMES, Members(store.files(), np.array([0, 1, -1, 0])), None, [])
    assert make_bundle(listing, SourceOptions(image_size=8)).train.fingerprint() != before


@pytest.mark.parametrize("storage", ["memory", "stream"])
def test_a_subset_is_those_images_under_their_own_names(tmp_path: Path, storage: str) -> None:
    images = files(tmp_path, storage)
    part = images.subset(np.array([3, 1]))
    assert (list(part.ids), part.labels.tolist(), len(part)) == (["3.png", "1.png"], [0, 1], 2)
    assert torch.equal(part.read(np.arange(2)), images.read(np.array([3, 1])))
    prints = {images.fingerprint(), part.fingerprint(), images.subset(np.array([1, 3])).fingerprint()}
    assert len(prints) == 3
    assert len(images) == 4


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (np.array([0, 1, 2]), "labels run from 0 to 2, but there are 2 classes"),
        (np.array([0, -2, 1]), "labels run from -2 to 1"),
        (np.array([0, 1]), "3 images but 2 labels"),
    ],
)
def test_labels_must_fit(labels: np.ndarray, message: str) -> None:
    with pytest.raises(DataError, match=message):
        ArrayImages(torch.zeros(3, 1, 2, 2, dtype=torch.uint8), labels, NAMES)


def test_ids_must_differ() -> None:
    with pytest.raises(DataError, match="6 images need as many different ids"):
        arrays(ids=["0", "1", "2", "3", "4", "4"])


@pytest.mark.parametrize(
    "images",
    [
        torch.zeros(2, 3, 4, 4),
        torch.zeros(2, 2, 4, 4, dtype=torch.uint8),
        torch.zeros(2, 4, dtype=torch.uint8),
    ],
)
def test_images_must_be_uint8_with_one_or_three_channels(images: torch.Tensor) -> None:
    with pytest.raises(DataError, match=r"expected uint8 \(N, C, H, W\) with 1 or 3 channels"):
        ArrayImages(images)


def test_features_must_be_finite() -> None:
    features = np.ones((4, 2), dtype=np.float32)
    features[2, 1] = np.nan
    with pytest.raises(DataError, match="1 rows hold NaN or infinity, the first is row 2"):
        FeatureArray(features)


def test_training_and_test_images_must_agree() -> None:
    other = ArrayImages(torch.zeros(2, 3, 4, 4, dtype=torch.uint8), np.array([0, 1]), NAMES)
    with pytest.raises(DataError, match=r"shapes \(3, 2, 2\) and \(3, 4, 4\)"):
        DataBundle(arrays(), other, DataHints(flip=True))


def test_a_string_table_reads_like_a_tuple() -> None:
    words = ("", "äpfel", "b/c.png", "\udcff.png", "")
    table = StringTable(words)
    assert tuple(table) == words
    assert (len(table), table[-2], tuple(table[1:3])) == (5, "\udcff.png", ("äpfel", "b/c.png"))
    with pytest.raises(IndexError):
        table[5]


def test_resizing_arrays_interpolates() -> None:
    ramp = torch.arange(0, 160, 10, dtype=torch.uint8).reshape(1, 1, 4, 4)
    doubled = resize_images(ramp, 8)
    assert doubled.shape == (1, 1, 8, 8)
    assert doubled[0, 0, 0].tolist() == [0, 2, 8, 12, 18, 22, 28, 30]  # linear between pixel centres
    assert resize_images(ramp, 4) is ramp
    board = (torch.arange(64).reshape(8, 8) % 2 * 254).to(torch.uint8)[None, None]
    assert (resize_images(board, 2).int() - 127).abs().max() <= 20  # antialiased


def test_resizing_oblong_arrays_crops_the_centre() -> None:
    wide = torch.arange(6, dtype=torch.uint8).expand(1, 1, 4, 6)
    assert resize_images(wide, 4)[0, 0, 0].tolist() == [1, 2, 3, 4]
