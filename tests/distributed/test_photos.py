"""Photographs with the installed encoder in two processes: features, training, held-out labels, stops and kills."""

import json
from pathlib import Path

import pytest

from tests.distributed import photos
from tests.distributed.test_one_process_or_two import assert_same_run
from tests.engine.kills import assert_same_run as assert_same_bits
from tests.engine.photos import IMAGES, LABELS, make_photos
from tests.engine.zygote import Zygote

pytestmark = pytest.mark.timeout(400)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("photos")
    make_photos(folder)
    return folder


@pytest.fixture(scope="module")
def alone(place: Path) -> Path:
    """The run of one process."""
    photos.train(place, place / "one", "run")
    return place / "one" / "run"


@pytest.fixture(scope="module")
def together(place: Path, zygote: Zygote) -> Path:
    """Where two processes left their runs."""
    job = zygote.job("photos", place, place, processes=2)
    assert job.code == 0, job.output
    return place


def test_two_processes_end_as_one_does(alone: Path, together: Path) -> None:
    assert_same_run(alone, together / "whole", tolerance=1e-9)
    for name in ("labels.csv", "cross_check.csv"):
        assert (alone / name).read_text() == (together / "whole" / name).read_text(), name
    result = json.loads((together / "whole" / "result.json").read_text())
    assert (result["method"], result["labelled"], result["unlabelled"]) == ("protocon-frozen", LABELS, IMAGES - LABELS)


def test_features_are_computed_by_both_and_each_chunk_once(together: Path) -> None:
    tables = {read_shape(table)[0]: table for table in (together / "cache of whole").rglob("chunks.jsonl")}
    assert tables.keys() == {LABELS, IMAGES}  # of the labelled images, which are asked about mirrors; of all
    for images, table in tables.items():
        chunks = [json.loads(line)["chunk"] for line in table.read_text().splitlines() if line]
        assert sorted(chunks) == list(range(-(-images // photos.CHUNK)))


def read_shape(table: Path) -> list[int]:
    shape: list[int] = json.loads((table.parent / "about.json").read_text())["shape"]
    return shape


@pytest.mark.parametrize(
    ("stage", "kept"), [("training", "all of it is saved"), ("held-out", "groups before this one")]
)
def test_a_signal_to_one_stops_both_and_they_resume_to_the_bit(stage: str, kept: str, together: Path) -> None:
    said = [(together / f"{stage}-{rank}.txt").read_text() for rank in (0, 1)]
    assert "another process" in said[0]
    assert "SIGTERM" in said[1]
    assert all(kept in text for text in said)
    assert_same_bits(together / "whole", together / stage)
    assert (together / stage / "cross_check.csv").read_bytes() == (together / "whole" / "cross_check.csv").read_bytes()


def test_a_process_killed_among_features_ends_the_job_and_one_process_resumes(
    alone: Path, place: Path, zygote: Zygote, tmp_path: Path
) -> None:
    job = zygote.job("photos killed", place, tmp_path, processes=2)
    assert job.code != 0
    assert "process 0 of 2 cannot reach the others" in job.output
    tables = list((tmp_path / "cache of run").rglob("chunks.jsonl"))
    assert 0 < sum(table.read_text().count("sha256") for table in tables) < IMAGES // photos.CHUNK
    photos.train(place, tmp_path, "run", resume=True)
    assert_same_bits(alone, tmp_path / "run")
