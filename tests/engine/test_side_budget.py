"""A time budget chooses how large the images are of which a frozen encoder computes features."""

from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from protocon.engine.planning import side_budget
from protocon.engine.planning.side_budget import side_that_fits
from protocon.engine.run import fit
from protocon.runs.run_folder import RunFolder
from protocon.settings.config import RunConfig, build_config
from tests.engine.photos import install, make_photos
from tests.engine.runs import quiet
from tests.features.tiny import SIDE


def test_the_largest_side_that_leaves_time_for_the_rest() -> None:
    assert side_that_fits(60, 192, 100) == 192
    assert side_that_fits(61, 192, 100) == 160
    assert side_that_fits(100, 192, 45) == 96  # 25 of 27 seconds
    assert side_that_fits(1e6, 192, 10) == 96  # none fits: the smallest
    assert side_that_fits(1e6, 64, 10) == 64  # never larger than it was


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("side")
    make_photos(place)
    return place


def config_of(place: Path, *overrides: str) -> RunConfig:
    settings = {
        "data": {"name": "folder", "root": str(place / "photos"), "labels": str(place / "labels.csv")},
        "network": {"frozen": True},
        "run": {"cache": str(place / "cache")},
    }
    small = ("batch_size=4", "components=16", "run.cross_check=0", "run.report=false", "tensorboard=false")
    return build_config(settings=settings, overrides=[*small, "network.hidden=16", *overrides])


def run(place: Path, name: str, console: Console, *overrides: str) -> RunFolder:
    fit(config_of(place, *overrides), out=place / "runs", name=name, console=console)
    return RunFolder(place / "runs" / name)


def test_features_that_take_too_long_are_those_of_smaller_images(
    photos: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    install(photos / "packages", monkeypatch)
    monkeypatch.setattr(side_budget, "SIDES", (SIDE // 2,))
    monkeypatch.setattr(side_budget, "seconds_per_view", lambda *_: 10.0)
    small = run(photos, "small", Console(), "time_budget=60s")
    said = capsys.readouterr().out
    assert f"images of {SIDE // 2} pixels instead of {SIDE}" in said
    assert small.resolved().data.image_size == SIDE // 2
    assert small.config().data.image_size == "auto"
    # A size that was asked for stays, and so does one whose features are there.
    asked = run(photos, "asked", quiet(), "time_budget=60s", f"image_size={SIDE}")
    assert asked.resolved().data.image_size == SIDE
    known = run(photos, "known", quiet(), "time_budget=60s")
    assert known.resolved().data.image_size == SIDE


def test_a_quick_encoder_sees_images_of_the_usual_size(photos: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(photos / "packages", monkeypatch)
    monkeypatch.setattr(side_budget, "SIDES", (SIDE // 2,))
    timed = side_budget.seconds_per_view
    seen: list[float] = []

    def watched(*given: Any) -> float:
        seen.append(timed(*given))
        return seen[-1]

    monkeypatch.setattr(side_budget, "seconds_per_view", watched)
    usual = run(photos, "usual", quiet(), "time_budget=60s", f"run.cache={photos / 'empty'}")
    assert usual.resolved().data.image_size == SIDE
    assert len(seen) == 1
    assert 0 < seen[0] < 1
