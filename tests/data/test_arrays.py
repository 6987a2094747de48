"""Arrays of one's own."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from protocon.data.imageset import ArrayImages, DataBundle, FeatureArray
from protocon.data.registry import DATASETS
from protocon.data.source_options import SourceOptions
from protocon.errors import ConfigError, DataError

NCHW = np.arange(4 * 3 * 6 * 5, dtype=np.uint16).astype(np.uint8).reshape(4, 3, 6, 5)


def load(tmp_path: Path, arrays: dict[str, Any], **options: Any) -> DataBundle:
    np.savez(tmp_path / "data.npz", **arrays)
    return DATASETS["arrays"](SourceOptions(root=tmp_path / "data.npz", **options))


@pytest.mark.parametrize("name", ["x", "X", "images", "x_train"])
@pytest.mark.parametrize("images", [NCHW, NCHW.transpose(0, 2, 3, 1)], ids=["nchw", "nhwc"])
def test_images_in_either_order_of_axes(tmp_path: Path, name: str, images: np.ndarray) -> None:
    train = load(tmp_path, {name: images, "y": [0, 1, -1, 0]}).train
    assert isinstance(train, ArrayImages)
    np.testing.assert_array_equal(train.read(np.arange(4)).numpy(), NCHW)
    assert (train.labels.tolist(), train.class_names, train.shape) == ([0, 1, -1, 0], ("0", "1"), (3, 6, 5))


def test_grey_images_without_a_channel_axis(tmp_path: Path) -> None:
    train = load(tmp_path, {"x": NCHW[:, 0]}).train
    assert (train.shape, train.labels.tolist()) == ((1, 6, 5), [-1] * 4)


def test_images_are_resized_to_squares(tmp_path: Path) -> None:
    assert load(tmp_path, {"x": NCHW, "y": [0, 1, 0, 1]}, image_size=8).train.shape == (3, 8, 8)


@pytest.mark.parametrize("dtype", [np.float64, np.float16, np.int32])
def test_rows_of_numbers_are_features(tmp_path: Path, dtype: Any) -> None:
    bundle = load(tmp_path, {"features": np.arange(8).reshape(4, 2).astype(dtype), "labels": [1, 2, 1, 2]})
    assert isinstance(bundle.train, FeatureArray)
    assert bundle.train.read(np.array([3])).tolist() == [[6.0, 7.0]]
    assert (bundle.train.class_names, bundle.hints.flip) == (("1", "2"), False)
    assert bundle.train.labels.tolist() == [0, 1, 0, 1]


@pytest.mark.parametrize(
    ("y", "labels", "names"),
    [
        (np.array(["dog", "", "cat", "dog"]), [1, -1, 0, 1], ("cat", "dog")),
        (np.array(["dog", "-1", " cat", "dog"]), [1, -1, 0, 1], ("cat", "dog")),
        (np.array([b"dog", b"", b"cat", b"dog"]), [1, -1, 0, 1], ("cat", "dog")),
        (np.array([3.0, np.nan, 11.0, -1.0]), [0, -1, 1, -1], ("3", "11")),
        (np.array([10, 9, 2, -1], dtype=np.int8), [2, 1, 0, -1], ("2", "9", "10")),
        (np.array([True, False, True, True]), [1, 0, 1, 1], ("0", "1")),
    ],
)
def test_labels_of_every_kind(tmp_path: Path, y: np.ndarray, labels: list[int], names: tuple[str, ...]) -> None:
    train = load(tmp_path, {"x": NCHW, "y": y}).train
    assert (train.labels.tolist(), train.class_names) == (labels, names)


def test_class_names_say_what_numbers_stand_for(tmp_path: Path) -> None:
    names = np.array(["ant", "bee", "cow"])
    train = load(tmp_path, {"x": NCHW, "y": [2, 0, -1, 2], "class_names": names}).train
    assert (train.class_names, train.labels.tolist()) == (("ant", "bee", "cow"), [2, 0, -1, 2])
    train = load(tmp_path, {"x": NCHW, "y": np.array(["cow", "", "ant", "ant"]), "class_names": names}).train
    assert train.labels.tolist() == [2, -1, 0, 0]
    with pytest.raises(DataError, match=r"does not cover: 3\. Expected the numbers 0 to 2"):
        load(tmp_path, {"x": NCHW, "y": [0, 1, 2, 3], "class_names": names})


def test_test_arrays(tmp_path: Path) -> None:
    bundle = load(tmp_path, {"x": NCHW, "y": [5, 7, -1, -1], "x_test": NCHW[2:], "y_test": [7, 9]})
    assert bundle.test is not None
    assert (bundle.train.class_names, bundle.test.labels.tolist()) == (("5", "7", "9"), [1, 2])
    np.testing.assert_array_equal(bundle.test.read(np.arange(2)).numpy(), NCHW[2:])


def test_a_test_fraction_of_arrays(tmp_path: Path) -> None:
    features = np.arange(20.0).reshape(10, 2)
    bundle = load(tmp_path, {"x": features, "y": [0, 1] * 4 + [-1, -1]}, test_fraction=0.25)
    assert bundle.test is not None
    assert sorted(bundle.test.labels.tolist()) == [0, 1]
    assert sorted([*bundle.train.ids, *bundle.test.ids], key=int) == [str(i) for i in range(10)]
    for part in (bundle.train, bundle.test):
        rows = [int(name) for name in part.ids]
        np.testing.assert_array_equal(part.read(np.arange(len(part))).numpy(), features[rows])


def test_npy_with_a_labels_file(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", NCHW)
    np.save(tmp_path / "y.npy", np.array(["b", "a", "", "b"]))
    train = DATASETS["arrays"](SourceOptions(root=tmp_path / "x.npy", labels=tmp_path / "y.npy")).train
    assert (train.labels.tolist(), train.class_names) == ([1, 0, -1, 1], ("a", "b"))


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"pixels": NCHW}, "Found the arrays: pixels"),
        ({"x": NCHW, "images": NCHW}, "has both x and images"),
        ({"x": NCHW / 255}, r"Images of type float64; expected uint8.*np\.rint\(255 \* x\)"),
        ({"x": NCHW[:, :2]}, "has channels in neither place"),
        ({"x": NCHW[:, :, :, :3]}, "could be either"),
        ({"x": NCHW[None]}, "expected .N, H, W."),
        ({"x": np.zeros(4)}, r"shape \(4,\)"),
        ({"x": NCHW, "y": [1, 2]}, "4 images but 2 labels"),
        ({"x": NCHW, "y": [[1], [2], [3], [4]]}, r"Labels of shape \(4, 1\)"),
        ({"x": NCHW, "y": [0.5, 1, 1, 0]}, "Labels with fractions"),
        ({"x": NCHW, "y": [0, -7, 1, 0]}, "Labels as low as -7"),
        ({"x": np.array(["a", "b"]).reshape(2, 1)}, "expected numbers"),
        ({"x": NCHW, "y": [0, 1, 0, 1], "x_test": NCHW}, "4 test images need y_test"),
        ({"x": NCHW, "y": [0, 1, 0, 1], "x_test": NCHW, "y_test": [0, -1, 0, 0]}, "a known label for each"),
        ({"x": np.array([[1.0, np.inf]])}, "hold NaN or infinity"),
    ],
)
def test_wrong_arrays_are_explained(tmp_path: Path, arrays: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        load(tmp_path, arrays)


class Tripwire:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (self.path,))


def test_arrays_of_objects_are_refused_unread(tmp_path: Path) -> None:
    y = np.array([Tripwire(tmp_path / "ran")] * 4, dtype=object)
    with pytest.raises(DataError, match="Arrays of Python objects are refused"):
        load(tmp_path, {"x": NCHW, "y": y})
    assert not (tmp_path / "ran").exists()


def test_files_that_are_no_arrays(tmp_path: Path) -> None:
    (tmp_path / "x.npz").write_text("hello")
    with pytest.raises(DataError, match=r"x\.npz cannot be read as arrays"):
        DATASETS["arrays"](SourceOptions(root=tmp_path / "x.npz"))
    with pytest.raises(DataError, match=r"expected in .*an \.npz file.*Found: x\.npz"):
        DATASETS["arrays"](SourceOptions(root=tmp_path))


def test_options_that_contradict_the_arrays(tmp_path: Path) -> None:
    features = {"x": np.zeros((4, 2)), "y": [0, 1, 0, 1]}
    with pytest.raises(ConfigError, match="the arrays hold embeddings"):
        load(tmp_path, features, image_size=8)
    with pytest.raises(ConfigError, match="has test arrays of its own"):
        load(tmp_path, {**features, "x_test": np.zeros((1, 2)), "y_test": [0]}, test_fraction=0.5)
    with pytest.raises(ConfigError, match="has labels inside"):
        load(tmp_path, features, labels=tmp_path / "y.npy")


@pytest.mark.parametrize(
    "options",
    [
        {"image_size": 0},
        {"test_fraction": 1.0},
        {"storage": "disk"},
        {"bad_files": "ignore"},
        {"test_seed": -1},
    ],
)
def test_impossible_options_are_refused(options: dict[str, Any]) -> None:
    (name,) = options
    with pytest.raises(ConfigError, match=name):
        SourceOptions(**options)


def test_ids_name_the_rows(tmp_path: Path) -> None:
    names = np.array(["p 1", "p,2", "p3", "p4"])
    test = {"x_test": np.eye(4)[:2], "y_test": [0, 1], "ids_test": [7, 8]}
    bundle = load(tmp_path, {"x": np.eye(4), "y": [0, 1, -1, -1], "ids": names, **test})
    assert list(bundle.train.ids) == names.tolist()
    assert bundle.test is not None
    assert list(bundle.test.ids) == ["7", "8"]
    held = load(tmp_path, {"x": np.eye(4), "y": [0, 1, 0, 1], "ids": names}, test_fraction=0.5)
    assert held.test is not None
    assert {*held.train.ids, *held.test.ids} == set(names.tolist())
    assert list(load(tmp_path, {"x": np.eye(4)}).train.ids) == ["0", "1", "2", "3"]


def test_a_table_labels_rows_by_their_ids(tmp_path: Path) -> None:
    table = tmp_path / "mine.csv"
    table.write_text("id,label\nb,cat\nc,dog\nzebra,dog\n")
    bundle = load(tmp_path, {"x": np.eye(4), "ids": ["a", "b", "c", "d"]}, labels=table)
    assert bundle.train.labels.tolist() == [-1, 0, 1, -1]
    assert bundle.train.class_names == ("cat", "dog")
    assert bundle.files is not None
    assert any("line 4: zebra is not there" in line for line in bundle.files.warnings)
    np.save(tmp_path / "x.npy", np.eye(4))
    table.write_text("0,cat\n3,dog\n")
    by_number = DATASETS["arrays"](SourceOptions(root=tmp_path / "x.npy", labels=table)).train
    assert by_number.labels.tolist() == [0, -1, -1, 1]
    with pytest.raises(ConfigError, match="labels of their own"):
        load(tmp_path, {"x": np.eye(4), "y": [0, 1, 0, 1]}, labels=table)


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (["a", "b", "a", "c"], "more than once: a"),
        (["a", "b"], "for each of 4 rows"),
        ([0.5, 1.5, 2.5, 3.5], "type float64"),
    ],
)
def test_ids_must_be_one_for_each_row(tmp_path: Path, ids: list[Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        load(tmp_path, {"x": np.eye(4), "y": [0, 1, 0, 1], "ids": ids})
