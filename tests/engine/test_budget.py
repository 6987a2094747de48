"""Runs that are made to fit into the time that there is."""

import json
import time
from functools import partial
from pathlib import Path

import pytest
import yaml

from protocon.engine import run as running
from protocon.engine.planning.budget import MIN_EPOCHS, Speed, choose_epochs, measure, within_budget
from protocon.engine.run import fit
from protocon.engine.setup.encode import outline
from protocon.engine.setup.fabric import build_fabric
from protocon.engine.setup.session import build, prepare, settle
from protocon.engine.setup.settled import Settled
from protocon.errors import ConfigError
from protocon.runs.run_data import load_data
from protocon.settings.config import RunConfig, build_config
from tests.engine.runs import few_digits, quiet, small_config


class FakeClock:
    """Every look at it is `pace` seconds later."""

    def __init__(self, pace: float, now: float = 0.0) -> None:
        self.pace, self.now = pace, now

    def __call__(self) -> float:
        self.now += self.pace
        return self.now


@pytest.fixture(scope="module")
def settled() -> Settled:
    return settle_small("time_budget=20m")


def settle_small(*overrides: str) -> Settled:
    config = small_config(*overrides, method="fixmatch")
    return settle(config, load_data(config))


def test_epochs_fill_the_time_that_is_left() -> None:
    speed = Speed(step=0.5, epoch=1.0, once=10.0)
    assert speed.total(20, 10) == 20 * 6 + 10
    assert speed.epochs_within(130, 10) == 20
    assert speed.epochs_within(129.9, 10) == 19
    assert speed.epochs_within(5, 10) == 0


def test_the_choice_says_why(settled: Settled) -> None:
    per_epoch, usual = settled.resolved.steps_per_epoch, settled.resolved.total_epochs
    speed = Speed(step=0.1, epoch=0.0, once=0.0)
    fitting = 0.1 * per_epoch * 30
    epochs, reason = choose_epochs(speed, settled, budget=fitting / 0.9, left=fitting + 1e-6)
    assert epochs == 30
    assert "0.1 s per step" in reason
    epochs, reason = choose_epochs(speed, settled, budget=1e6, left=0.9e6)
    assert epochs == 8 * usual
    assert "the most that a budget chooses" in reason
    epochs, reason = choose_epochs(speed, settled, budget=3.0, left=2.0)
    assert epochs < MIN_EPOCHS
    for advice in ("--frozen", "--image-size", "--encoder", "--epochs", "Allow"):
        assert advice in reason


def test_steps_are_timed_by_the_clock() -> None:
    config = small_config(method="fixmatch")
    session = prepare(config)
    before = [p.clone() for p in session.network.parameters()]
    speed = measure(session, build_fabric(config), seconds=1.0, clock=FakeClock(0.25))
    assert speed.step == 0.25  # one look before and one after each
    assert speed.once == pytest.approx(0.25 / 128 * 1397)
    assert speed.epoch == pytest.approx(2 * 400 * 0.25 / 128 + 2 * 0.25)  # test set twice, epoch's end, checkpoint
    assert any((p != q).any() for p, q in zip(before, session.network.parameters(), strict=True))  # real steps


def test_a_fitted_session_is_that_of_its_epochs() -> None:
    config = small_config("time_budget=2m", method="fixmatch")
    asked = settle_small("time_budget=2m")
    fitted = within_budget(config, asked, build_fabric(config), quiet(), started=0.0, clock=FakeClock(0.02))
    epochs = fitted.resolved.total_epochs
    assert epochs != asked.resolved.total_epochs
    plain = prepare(small_config(f"epochs={epochs}", method="fixmatch"))
    session = build(fitted, outline(fitted))
    for mine, theirs in zip(session.network.parameters(), plain.network.parameters(), strict=True):
        assert (mine == theirs).all()
    assert fitted.config.optim.lr == plain.config.optim.lr
    assert "per step" in fitted.resolved.reasons["optim.epochs"]


def test_a_budget_that_is_too_small_is_refused_before_training(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"fewer than 10 are not worth training\. Allow"):
        fit(small_config("time_budget=0.1s", method="fixmatch"), out=tmp_path, console=quiet())
    assert list(tmp_path.iterdir()) == []


def test_epochs_that_were_asked_for_win() -> None:
    config = small_config("time_budget=1s", "epochs=7")
    settled = settle(config, load_data(config))
    assert within_budget(config, settled, build_fabric(config), quiet(), started=0.0) is settled


def test_the_epochs_of_a_real_run_are_pinned_and_repeat(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not a test of speed: how many epochs fit is up to the machine; here every look at its clock takes 0.1 s."""
    few = (*few_digits(tmp_path, 120), "batch_size=32", "eval_every=1000", "checkpoint_every=1000", "report=false")

    def config(*overrides: str) -> RunConfig:
        return build_config(settings={"method_name": "supervised"}, overrides=(*few, "tensorboard=false", *overrides))

    clock = FakeClock(0.1, time.monotonic())
    monkeypatch.setattr(running, "within_budget", partial(within_budget, clock=clock))
    result = fit(config("time_budget=12s"), out=tmp_path / "a", console=quiet())
    assert MIN_EPOCHS <= result["epochs"] < 60  # 12 s hold no more steps of 0.1 s
    run = Path(result["run"])
    resolved = yaml.safe_load((run / "resolved.yaml").read_text())
    assert resolved["optim"]["epochs"] == result["epochs"]
    reason = json.loads((run / "data.json").read_text())["auto"]["optim.epochs"]
    assert reason.startswith(f"{result['epochs']} (")
    assert "per step" in reason
    again = fit(config(f"epochs={result['epochs']}"), out=tmp_path / "b", console=quiet())
    assert (Path(again["run"]) / "metrics.jsonl").read_bytes() == (run / "metrics.jsonl").read_bytes()
