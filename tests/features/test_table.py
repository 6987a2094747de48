"""A table of features is trusted chunk by chunk: only bytes that still have their digest count."""

import errno
import os
from pathlib import Path

import numpy as np
import pytest
import torch

from protocon.base.parts import look
from protocon.errors import DataError
from protocon.features.cached_views import CachedViews
from protocon.features.feature_table import FeatureTable
from protocon.features.reduce import fitted_space
from protocon.networks.component_space import RootSpace
from tests.features.tiny import tiny_images

SHAPE = (10, 2, 3)


def table_in(folder: Path, dtype: type = np.float16) -> FeatureTable:
    return FeatureTable(folder / "table", shape=SHAPE, dtype=np.dtype(dtype), chunk=4)


def values(dtype: type = np.float16) -> np.ndarray:
    return np.random.default_rng(0).normal(size=SHAPE).astype(dtype)


def write_all(table: FeatureTable, content: np.ndarray) -> None:
    for number in range(table.chunks):
        table.write(number, content[table.rows(number)])


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_what_is_written_in_any_order_is_read_back(tmp_path: Path, dtype: type) -> None:
    table, content = table_in(tmp_path, dtype), values(dtype)
    assert table.missing() == [0, 1, 2]
    for number in (2, 0, 1):
        table.write(number, content[table.rows(number)])
    again = table_in(tmp_path, dtype)
    assert again.missing() == []
    assert torch.equal(again.open(), torch.from_numpy(content))


def test_an_interrupted_table_lacks_what_was_not_written(tmp_path: Path) -> None:
    table = table_in(tmp_path)
    table.write(1, values()[table.rows(1)])
    assert table_in(tmp_path).missing() == [0, 2]


def test_a_flipped_byte_costs_its_chunk_alone(tmp_path: Path) -> None:
    table, content = table_in(tmp_path), values()
    write_all(table, content)
    raw = bytearray(table.file.read_bytes())
    raw[-1] ^= 1  # in the last row, so in chunk 2
    table.file.write_bytes(raw)
    assert table_in(tmp_path).missing() == [2]
    table.write(2, content[table.rows(2)])
    assert table_in(tmp_path).missing() == []
    assert torch.equal(table.open(), torch.from_numpy(content))


@pytest.mark.parametrize("damage", ["cut", "empty", "gone", "other"])
def test_a_file_that_is_no_such_table_is_made_anew(tmp_path: Path, damage: str) -> None:
    table = table_in(tmp_path)
    write_all(table, values())
    if damage == "gone":
        table.file.unlink()
    elif damage == "other":
        np.save(table.file, np.zeros((3, 3)))
    else:
        table.file.write_bytes(table.file.read_bytes()[:-5] if damage == "cut" else b"")
    assert table_in(tmp_path).missing() == [0, 1, 2]
    write_all(table, values())
    assert table_in(tmp_path).missing() == []


def test_a_log_line_cut_short_costs_its_chunk_alone(tmp_path: Path) -> None:
    table = table_in(tmp_path)
    write_all(table, values())
    table.log.write_text(table.log.read_text()[:-10])
    assert table_in(tmp_path).missing() == [2]
    table.write(2, values()[table.rows(2)])
    assert table_in(tmp_path).missing() == []


def test_writing_to_the_tensor_does_not_reach_the_file(tmp_path: Path) -> None:
    table = table_in(tmp_path)
    write_all(table, values())
    table.open().zero_()
    assert table_in(tmp_path).missing() == []


def test_a_folder_that_cannot_be_written_is_an_error_that_names_the_setting(tmp_path: Path) -> None:
    (tmp_path / "table").write_text("in the way")
    with pytest.raises(DataError, match=r"run\.cache"):
        table_in(tmp_path).write(0, values()[:4])


@pytest.mark.parametrize(
    ("number", "todo"), [(errno.EROFS, "allow writing there"), (errno.EACCES, "allow writing"), (errno.ENOSPC, "room")]
)
def test_a_read_only_or_full_cache_says_where_and_what_to_do(
    number: int, todo: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(np.lib.format, "open_memmap", refused)
    with pytest.raises(DataError) as caught:
        table_in(tmp_path).prepare()
    for part in (str(tmp_path / "table"), os.strerror(number), todo, "run.cache="):
        assert part in str(caught.value)


def test_features_that_are_there_are_used_though_nothing_can_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_all(table_in(tmp_path), values())

    def refused(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, "read-only")

    monkeypatch.setattr(FeatureTable, "prepare", refused)
    table = table_in(tmp_path)
    assert table.missing() == []
    samples = CachedViews(tiny_images(SHAPE[0]), table.open(), table)
    monkeypatch.setattr("protocon.features.saved_space.write_bytes", refused)
    assert fitted_space(samples, "roots", parts=look(3), components=2)(samples.clean()).shape == (SHAPE[0], 2)


def test_the_space_of_features_is_kept_beside_them_and_damage_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_all(table_in(tmp_path), values())
    table = table_in(tmp_path)
    samples = CachedViews(tiny_images(SHAPE[0]), table.open(), table)
    first = fitted_space(samples, "roots", parts=look(3), components=2).state_dict()
    with monkeypatch.context() as patch:
        patch.setattr(RootSpace, "fit", None)  # it is not fitted again
        again = fitted_space(samples, "roots", parts=look(3), components=2).state_dict()
    assert all(torch.equal(first[name], again[name]) for name in first)
    (file,) = table.folder.glob("space-*")
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(bytes(content))
    third = fitted_space(samples, "roots", parts=look(3), components=2).state_dict()
    assert all(torch.equal(first[name], third[name]) for name in first)
