"""A time budget chooses how large the images are of which a frozen encoder computes features."""

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from rich.console import Console

from protocon.data.imageset import DataBundle
from protocon.engine.loop.trainer import Trainer
from protocon.engine.planning import side_budget
from protocon.engine.planning.side_budget import images_within_budget, side_that_fits
from protocon.engine.run import fit
from protocon.engine.setup.encode import encode
from protocon.engine.setup.fabric import build_fabric
from protocon.engine.setup.session import settle
from protocon.runs.run_data import load_data
from protocon.runs.run_folder import RunFolder
from protocon.settings.config import RunConfig, build_config
from tests.engine.kills import assert_same_run
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


def seen(place: Path, console: Console, *overrides: str) -> DataBundle:
    """The data of a run with these settings."""
    config = config_of(place, *overrides)
    return images_within_budget(config, settle(config, load_data(config)), build_fabric(config), console)


def test_features_that_take_too_long_are_those_of_smaller_images(
    photos: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    install(photos / "packages", monkeypatch)
    monkeypatch.setattr(side_budget, "SIDES", (SIDE // 2,))
    monkeypatch.setattr(side_budget, "seconds_per_view", lambda *_: 10.0)
    fit(config_of(photos, "time_budget=60s", "epochs=2"), out=photos / "runs", name="small", console=Console())
    said = capsys.readouterr().out
    assert f"images of {SIDE // 2} pixels instead of {SIDE}" in said
    small = RunFolder(photos / "runs" / "small")
    assert small.resolved().data.image_size == SIDE // 2
    assert small.config().data.image_size == "auto"  # so that the same command resumes it
    # A size that was asked for stays, and so does one whose features are there.
    assert seen(photos, quiet(), "time_budget=60s").train.shape[-1] == SIDE // 2
    assert seen(photos, quiet(), "time_budget=60s", f"image_size={SIDE}").train.shape[-1] == SIDE
    assert seen(photos, quiet()).train.shape[-1] == SIDE
    config = config_of(photos)
    encode(settle(config, load_data(config)), quiet(), torch.device("cpu"))
    assert seen(photos, quiet(), "time_budget=60s").train.shape[-1] == SIDE


def test_a_run_within_a_budget_is_resumed_at_the_size_that_was_chosen(
    photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(photos / "packages", monkeypatch)
    monkeypatch.setattr(side_budget, "SIDES", (SIDE // 2,))
    monkeypatch.setattr(side_budget, "seconds_per_view", lambda *_: 10.0)
    config = config_of(photos, "time_budget=60s", "epochs=2", f"run.cache={tmp_path / 'cache'}")
    whole = Path(fit(config, out=tmp_path / "whole", name="run", console=quiet())["run"])
    shutil.rmtree(tmp_path / "cache")

    def dying(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "train_step", dying)
        with pytest.raises(KeyboardInterrupt):
            fit(config, out=tmp_path, name="run", console=quiet())
    monkeypatch.setattr(side_budget, "seconds_per_view", lambda *_: 0.0)  # nobody else needs the machine by now
    fit(config, out=tmp_path, name="run", resume=True, console=quiet())
    assert RunFolder(tmp_path / "run").resolved().data.image_size == SIDE // 2
    assert_same_run(whole, tmp_path / "run")


def test_a_quick_encoder_sees_images_of_the_usual_size(photos: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(photos / "packages", monkeypatch)
    monkeypatch.setattr(side_budget, "SIDES", (SIDE // 2,))
    timed = side_budget.seconds_per_view
    taken: list[float] = []

    def watched(*given: Any) -> float:
        taken.append(timed(*given))
        return taken[-1]

    monkeypatch.setattr(side_budget, "seconds_per_view", watched)
    usual = seen(photos, quiet(), "time_budget=60s", f"run.cache={photos / 'empty'}")
    assert usual.train.shape[-1] == SIDE
    assert len(taken) == 1
    assert 0 < taken[0] < 1
