"""benchmarks/suite.py: draws, references and tables, on features that are made up."""

import zipfile
from pathlib import Path

import numpy as np
import pytest

from benchmarks.suite_cells import Result, drawn, read_results, unpack
from benchmarks.suite_references import REFERENCES, Rows
from benchmarks.suite_tables import difference, table
from protocon.data.imageset import DataBundle, DataHints, FeatureArray
from tests.picking.blobs import blobs

SIZES = (120, 60, 30, 5)


@pytest.fixture(scope="module")
def rows() -> tuple[Rows, np.ndarray, np.ndarray]:
    train, groups = blobs(SIZES, spread=0.6)
    test, truth = blobs(SIZES, spread=0.6)
    made = Rows(train, test, np.stack([train, train], 1), test, len(SIZES))
    labels = np.full(len(groups), -1)
    for group in range(len(SIZES)):
        members = np.flatnonzero(groups == group)[:2]
        labels[members] = group
    return made, labels, truth


@pytest.mark.parametrize("name", REFERENCES)
def test_a_reference_finds_well_separated_groups(name: str, rows: tuple[Rows, np.ndarray, np.ndarray]) -> None:
    made, labels, truth = rows
    predicted = REFERENCES[name](made, labels)
    assert predicted.shape == truth.shape
    assert (predicted == truth).mean() > 0.9


def test_a_random_draw_has_every_class_and_follows_their_frequencies() -> None:
    train, groups = blobs(SIZES, spread=0.6)
    images = FeatureArray(train, groups, tuple("abcd"), name="blobs")
    splits = [drawn(DataBundle(images, None, DataHints(flip=True)), "r4", seed) for seed in range(5)]
    for split in splits:
        assert len(split.labelled) == 16
        assert split.counts.min() >= 1
        assert not set(split.labelled) & set(split.unlabelled)
    assert sum(split.counts[0] for split in splits) > 2 * sum(split.counts[2] for split in splits)
    assert len({tuple(split.labelled) for split in splits}) == 5
    assert (drawn(DataBundle(images, None, DataHints(flip=True)), "2", 0).counts == 2).all()


def test_differences_are_paired_by_draw() -> None:
    cells = [
        Result(folder, method, "4", seed, accuracy + 0.1 * seed, accuracy / 2, 1.0)
        for folder in ("a", "b")
        for method, accuracy in (("ours", 0.5), ("other", 0.4))
        for seed in range(3)
    ]
    assert difference(cells, "ours", "other") == ("+10.0 ± 0.0 / +5.0 ± 0.0", "a +10.0")
    lines = table(cells, "4", "ours").splitlines()
    assert lines[0].startswith("4 labels per class")
    assert next(line for line in lines if line.startswith("| ours")).count("60.0 / 25.0") == 3


def test_a_cut_line_is_measured_again(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text('\n{"folder": "a", "method": "m", "draw": "4", "seed": 0, "accuracy": 1.0, "macro": 1.0, "seconds')
    assert read_results(file) == []


def test_cifar_is_sampled_evenly_over_its_names(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "cifar10.zip", "w") as archive:
        for number in range(400):
            archive.writestr(f"cifar10/test/cat/{number:04}.png", b"")
    names = sorted(path.name for path in (unpack(tmp_path / "cifar10.zip", "cifar10", tmp_path) / "test/cat").iterdir())
    assert len(names) == 200
    assert names[:3] == ["0000.png", "0002.png", "0004.png"]
