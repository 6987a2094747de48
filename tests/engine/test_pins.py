"""Resuming: with the settings that a run began with, or not at all, or with changes that were accepted."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from protocon.engine.loop import saver as saving
from protocon.engine.run import fit, resume_run
from protocon.errors import DataError, RunError
from protocon.runs.run_folder import RunFolder
from protocon.settings import auto
from protocon.settings.config import RunConfig, build_config
from tests.engine.kills import assert_same_run, embeddings
from tests.engine.runs import quiet
from tests.engine.test_repeat_and_resume import StoppedError, stop_after


def config_for(folder: Path, *overrides: str, method: str = "protocon") -> RunConfig:
    """Embeddings: a run takes a second."""
    _, _, _, root, *settings = embeddings(folder)
    values = {"method_name": method, "data": {"name": "arrays", "root": root}}
    return build_config(settings=values, overrides=(*settings, "tensorboard=false", "report=false", *overrides))


def begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *overrides: str, epochs: int = 2) -> RunFolder:
    """A run that died after some epochs."""
    with monkeypatch.context() as patch:
        stop_after(patch, epochs)
        with pytest.raises(StoppedError):
            fit(config_for(tmp_path, *overrides), out=tmp_path / "runs", name="run", console=quiet())
    return RunFolder(tmp_path / "runs" / "run")


def resume(tmp_path: Path, *overrides: str, accept: bool = False) -> dict[str, Any]:
    config = config_for(tmp_path, *overrides)
    return fit(config, out=tmp_path / "runs", name="run", resume=True, accept_changes=accept, console=quiet())


def test_resolved_settings_leave_nothing_to_choose(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = begun(tmp_path, monkeypatch)
    asked = yaml.safe_load((run.path / "config.yaml").read_text())
    pinned = yaml.safe_load((run.path / "resolved.yaml").read_text())
    assert asked["optim"]["lr"] == asked["method"]["neighbours"] == asked["method"]["dual_rate"] == "auto"
    assert isinstance(pinned["optim"]["lr"], float)
    assert isinstance(pinned["method"]["neighbours"], int)
    assert isinstance(pinned["method"]["dual_rate"], float)
    assert pinned["method"]["alignment"] == "mean"


def test_a_later_meaning_of_auto_does_not_change_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = fit(config_for(tmp_path), out=tmp_path / "whole", name="run", console=quiet())
    run = begun(tmp_path, monkeypatch)
    monkeypatch.setattr(auto, "_SHORT_RUN", 1)  # a version of the package with other learning rates…
    monkeypatch.setattr("protocon.methods.protocon_config.PAPER_NEIGHBOURS", 7)  # …and other clusters
    assert resume(tmp_path)["neighbours"] == whole["neighbours"]
    assert_same_run(Path(whole["run"]), run.path)


def test_changes_are_refused_named_and_accepted_if_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = begun(tmp_path, monkeypatch)
    with pytest.raises(RunError, match=r"optim\.epochs: 4 → 6[\s\S]*--accept-changes"):
        resume(tmp_path, "epochs=6")
    assert run.resolved().optim.epochs == 4
    result = resume(tmp_path, "epochs=6", "eval_every=2", accept=True)
    assert result["epochs"] == 6
    assert len(run.metrics()) == 6
    assert run.config().optim.epochs == run.resolved().optim.epochs == 6
    (change,) = [json.loads(line) for line in run.changes_file.read_text().splitlines()]
    assert change == {"epoch": 2, "changes": ["optim.epochs: 4 → 6", "run.eval_every: 1 → 2"]}


@pytest.mark.parametrize("override", ["projection_dim=32", "run.seed=3", "batch_size=8", "mu=5", "alpha=0.5"])
def test_what_would_be_another_run_is_refused_whatever_is_accepted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, override: str
) -> None:
    begun(tmp_path, monkeypatch)
    with pytest.raises(RunError, match=rf"cannot change \w+\.{override.partition('=')[0].split('.')[-1]}"):
        resume(tmp_path, override, accept=True)


def test_changed_data_stays_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = begun(tmp_path, monkeypatch)
    content = dict(np.load(tmp_path / "set.npz"))
    content["x"][5, 1] += 1
    np.savez(tmp_path / "set.npz", **content)
    with pytest.raises(DataError, match="other data"):
        resume_run(run, quiet(), accept_changes=True)


def test_a_named_run_takes_changes_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = begun(tmp_path, monkeypatch)
    with pytest.raises(RunError, match=r"optim\.epochs"):
        resume_run(run, quiet(), overrides=["epochs=3"])
    assert resume_run(run, quiet(), overrides=["epochs=3"], accept_changes=True)["epochs"] == 3


def test_a_crash_between_the_two_settings_files_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = begun(tmp_path, monkeypatch)
    text = (run.path / "resolved.yaml").read_text()
    (run.path / "resolved.yaml").write_text(text.replace("epochs: 4", "epochs: 6"))
    with pytest.raises(RunError, match=r"optim\.epochs: 6 → 4"):
        resume(tmp_path)


def test_resume_auto_starts_a_run_only_if_there_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = begun(tmp_path, monkeypatch)
    for file in ("config.yaml", "resolved.yaml", "split.json"):
        content = (run.path / file).read_bytes()
        (run.path / file).unlink()
        with pytest.raises(RunError, match=f"cannot be resumed: it lacks {file}"):
            resume(tmp_path)
        (run.path / file).write_bytes(b"\x00{nonsense")
        with pytest.raises((RunError, DataError), match=file):
            resume(tmp_path)
        (run.path / file).write_bytes(content)
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["run"]
    fit(config_for(tmp_path), out=tmp_path / "others", name="run", resume=True, console=quiet())
    assert (tmp_path / "others" / "run" / "result.json").is_file()


def test_lost_checkpoints_are_an_error_not_a_new_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = begun(tmp_path, monkeypatch)
    for path in run.checkpoints.iterdir():
        path.unlink()
    with pytest.raises(RunError, match=r"trained for 2 epochs, but .* holds no checkpoint"):
        resume(tmp_path)


def test_a_run_that_died_before_its_first_checkpoint_begins_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = fit(config_for(tmp_path), out=tmp_path / "whole", name="run", console=quiet())

    def die(*_args: object, **_kwargs: object) -> None:
        raise StoppedError

    with monkeypatch.context() as patch:
        patch.setattr(saving, "save_checkpoint", die)
        with pytest.raises(StoppedError):
            resume(tmp_path)
    resume(tmp_path)
    assert_same_run(Path(whole["run"]), tmp_path / "runs" / "run")


def test_a_run_folder_appears_whole_and_nothing_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "runs" / "run").mkdir(parents=True)
    (tmp_path / "runs" / "run" / "mine.txt").write_text("mine")
    (tmp_path / "runs" / "run-2").write_text("a file")
    config = config_for(tmp_path, method="supervised")
    result = fit(config, out=tmp_path / "runs", name="run", console=quiet())
    assert Path(result["run"]).name == "run-3"
    assert [path.name for path in (tmp_path / "runs" / "run").iterdir()] == ["mine.txt"]

    def full(*_args: object) -> None:
        raise OSError(28, "No space left on device")

    old, fresh = tmp_path / "runs" / ".other.new-a", tmp_path / "runs" / ".other.new-b"  # left by killed processes
    for folder in (old, fresh):
        (folder / "checkpoints").mkdir(parents=True)
    os.utime(old, (0, 0))
    monkeypatch.setattr("protocon.runs.run_folder.save_split", full)
    with pytest.raises(RunError, match="No space left"):
        fit(config, out=tmp_path / "runs", name="other", console=quiet())
    left = sorted(path.name for path in (tmp_path / "runs").iterdir())
    assert left == [fresh.name, "run", "run-2", "run-3"]  # somebody may still be at a fresh one
