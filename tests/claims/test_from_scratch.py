"""`benchmarks.from_scratch`: cells in their order, none twice, and a file that another machine can continue from."""

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import from_scratch
from protocon.claims.field import drawn, field_named
from protocon.compare.cells import Job
from protocon.compare.request import Cell
from protocon.data.shared_bundle import SharedBundle
from protocon.errors import ConfigError
from protocon.runs.run_data import load_data
from protocon.settings.config import build_config

FIELD = field_named("digits", epochs=1, train=120, test=40)


def test_cells_that_can_be_compared_come_first() -> None:
    found = from_scratch.plan(["a", "b"], [4, 2], [0, 1, 3])
    assert found[:4] == [("a", 4, 0), ("b", 4, 0), ("a", 4, 1), ("b", 4, 1)]
    assert found[4:8] == [("a", 2, 0), ("b", 2, 0), ("a", 2, 1), ("b", 2, 1)]
    assert found[8:] == [("a", 4, 3), ("b", 4, 3), ("a", 2, 3), ("b", 2, 3)]


def rows(file: Path) -> list[dict[str, str]]:
    with file.open(newline="") as lines:
        return list(csv.DictReader(lines))


def test_a_committed_file_is_continued_and_no_cell_trained_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "cells.csv"
    cells = from_scratch.plan(["supervised", "logistic-regression"], [2], [0, 1])
    trained: list[Cell] = []
    measure = from_scratch.measure

    def counted(job: Job, data: SharedBundle) -> dict[str, Any]:
        trained.append(job.cell)
        return measure(job, data)

    monkeypatch.setattr(from_scratch, "measure", counted)
    assert not from_scratch.run(FIELD, cells[:3], file=file, out=tmp_path / "a", minutes=0)
    assert from_scratch.run(FIELD, cells[:2], file=file, out=tmp_path / "a", minutes=9)
    first = rows(file)
    assert [row["method"] for row in first] == ["supervised", "logistic-regression"]
    assert all(0 < float(row["accuracy"]) <= 1 for row in first)
    # All that is left of the first machine is the file.
    assert from_scratch.run(FIELD, cells, file=file, out=tmp_path / "b", minutes=9)
    assert rows(file)[:2] == first
    assert [(row["method"], row["seed"]) for row in rows(file)[2:]] == [
        ("supervised", "1"),
        ("logistic-regression", "1"),
    ]
    assert len(trained) == 4
    assert not list(tmp_path.glob("*/.data-*"))


def test_a_cell_that_another_process_trains_is_left_to_it(tmp_path: Path) -> None:
    cells = [("logistic-regression", 2, 0)]
    with from_scratch.taken(tmp_path / "out/locks/logistic-regression-2pc-seed0") as ours:
        assert ours
        assert not from_scratch.run(FIELD, cells, file=tmp_path / "cells.csv", out=tmp_path / "out", minutes=9)
    assert from_scratch.run(FIELD, cells, file=tmp_path / "cells.csv", out=tmp_path / "out", minutes=9)


def test_validation_images_are_further_training_images() -> None:
    bundle = load_data(build_config(settings={"data": {"name": "digits", "labels_per_class": 2}}))
    plain, chosen = (drawn(bundle, field_named("digits", train=100, test=50, validation=on)) for on in (None, True))
    assert bundle.test is not None
    assert plain.test is not None
    assert chosen.test is not None
    assert list(plain.train.ids) == list(chosen.train.ids)
    held = set(chosen.test.ids)
    assert len(held) == 50
    assert held <= set(bundle.train.ids) - set(chosen.train.ids)
    assert not held & set(bundle.test.ids)
    assert np.array_equal(plain.train.labels, chosen.train.labels)
    with pytest.raises(ConfigError, match="kept for validation"):
        drawn(bundle, field_named("digits", validation=True))
