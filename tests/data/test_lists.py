"""Mini-ImageNet and DomainNet."""

from pathlib import Path

import numpy as np
import pytest

from protocon.data.registry import DATASETS
from protocon.data.source_options import SourceOptions
from protocon.errors import ConfigError, DataError
from tests.data.images import class_folders, gradient, save_png


def mini_csv(root: Path, train: dict[str, str], test: dict[str, str]) -> None:
    for part, rows in (("train", train), ("test", test)):
        lines = ["filename,label", *(f"{name},{label}" for name, label in rows.items())]
        (root / f"{part}.csv").write_text("\n".join(lines))


@pytest.mark.parametrize("by_class", [True, False])
def test_mini_imagenet_from_lists(tmp_path: Path, by_class: bool) -> None:
    train = {"a1.png": "n02", "b1.png": "n01", "a2.png": "n02"}
    test = {"b9.png": "n01", "a9.png": "n02"}
    mini_csv(tmp_path, train, test)
    (tmp_path / "val.csv").write_text("filename,label\n")
    for i, (name, label) in enumerate({**train, **test}.items()):
        folder = tmp_path / "images" / label if by_class else tmp_path / "images"
        save_png(folder / name, gradient(84, 84, shift=i))
    bundle = DATASETS["mini-imagenet"](SourceOptions(root=tmp_path))
    assert bundle.test is not None
    assert (bundle.train.class_names, bundle.train.labels.tolist()) == (("n01", "n02"), [1, 0, 1])
    assert (bundle.test.labels.tolist(), bundle.train.shape) == ([0, 1], (3, 84, 84))
    np.testing.assert_array_equal(
        bundle.train.read(np.array([1]))[0].permute(1, 2, 0).numpy(), gradient(84, 84, shift=1)
    )
    assert bundle.files is not None
    assert [skip.path for skip in bundle.files.skipped] == ["val.csv"]


def test_mini_imagenet_from_class_folders(tmp_path: Path) -> None:
    class_folders(tmp_path / "train", {"n01": 2, "n02": 2})
    class_folders(tmp_path / "test", {"n01": 1, "n02": 1})
    bundle = DATASETS["mini-imagenet"](SourceOptions(root=tmp_path))
    assert bundle.train.shape == (3, 84, 84)
    assert bundle.test is not None
    assert bundle.test.labels.tolist() == [0, 1]


@pytest.mark.parametrize("lists", [True, False])
def test_the_few_shot_split_of_mini_imagenet_is_recognised(tmp_path: Path, lists: bool) -> None:
    if lists:
        mini_csv(tmp_path, {"a.png": "n01", "b.png": "n02"}, {"c.png": "n03"})
    else:
        class_folders(tmp_path / "train", {"n01": 1, "n02": 1})
        class_folders(tmp_path / "test", {"n03": 1})
    with pytest.raises(DataError, match=r"few-shot split.*500 \+ 100 images per class"):
        DATASETS["mini-imagenet"](SourceOptions(root=tmp_path))


def test_mini_imagenet_names_listed_files_that_are_missing(tmp_path: Path) -> None:
    mini_csv(tmp_path, {"a.png": "n01", "b.png": "n02"}, {"c.png": "n01"})
    save_png(tmp_path / "images" / "a.png")
    with pytest.raises(DataError, match=r"train\.csv lists 1 files that are not in .*images: b\.png"):
        DATASETS["mini-imagenet"](SourceOptions(root=tmp_path))


def test_mini_imagenet_elsewhere_says_what_is_expected(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"train\.csv and test\.csv.*Found: an empty folder"):
        DATASETS["mini-imagenet"](SourceOptions(root=tmp_path))


def domain_files(root: Path, folder: str = "") -> None:
    rows = {
        "train": [
            "clipart/aircraft_carrier/c_1.jpg 0",
            "clipart/zebra/c 2.jpg 344",
            "clipart/zebra/c_3.jpg 344",
        ],
        "test": ["clipart/zebra/c_9.jpg 344", "clipart/t-shirt/c_8.jpg 327"],
    }
    (root / folder).mkdir(exist_ok=True)
    for part, lines in rows.items():
        (root / folder / f"clipart_{part}.txt").write_text("\n".join(lines) + "\n")
        for line in lines:
            save_png(root / line.rpartition(" ")[0])


@pytest.mark.parametrize("folder", ["", "clipart", "splits"])
def test_domainnet_from_its_lists(tmp_path: Path, folder: str) -> None:
    domain_files(tmp_path, folder)
    bundle = DATASETS["domainnet"](SourceOptions(root=tmp_path, domain="clipart"))
    assert bundle.test is not None
    assert bundle.train.class_names == ("aircraft_carrier", "zebra")
    assert (bundle.train.labels.tolist(), bundle.test.labels.tolist()) == ([0, 1, 1], [1])
    assert (bundle.train.ids[1], bundle.train.shape) == ("clipart/zebra/c 2.jpg", (3, 224, 224))
    assert bundle.files is not None
    reason = "test image of a class without training images"
    assert [(s.path, s.reason) for s in bundle.files.skipped] == [("clipart/t-shirt/c_8.jpg", reason)]


def test_domainnet_needs_one_of_its_domains(tmp_path: Path) -> None:
    for domain in (None, "photos"):
        with pytest.raises(ConfigError, match="choose clipart, infograph, painting, quickdraw, real, sketch"):
            DATASETS["domainnet"](SourceOptions(root=tmp_path, domain=domain))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("clipart/zebra/c_1.jpg", r"clipart_train\.txt, line 4: expected `path label`"),
        ("clipart/horse/h.jpg 344", "label 344 stands for both 'zebra' and 'horse'"),
        ("clipart/zebra/none.jpg 344", r"lists 1 files that are not in .*: clipart/zebra/none\.jpg"),
    ],
)
def test_wrong_lines_in_domainnet_lists_are_named(tmp_path: Path, line: str, message: str) -> None:
    domain_files(tmp_path)
    with (tmp_path / "clipart_train.txt").open("a") as file:
        file.write(line + "\n")
    with pytest.raises(DataError, match=message):
        DATASETS["domainnet"](SourceOptions(root=tmp_path, domain="clipart"))


def test_domainnet_without_lists_says_where_to_get_them(tmp_path: Path) -> None:
    (tmp_path / "sketch").mkdir()
    with pytest.raises(DataError, match=r"sketch_train\.txt.*Found: sketch/\..*M3SDA"):
        DATASETS["domainnet"](SourceOptions(root=tmp_path, domain="sketch"))
