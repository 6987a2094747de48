"""MLflow and Weights & Biases get each epoch's numbers, through the real packages, without a network."""

import json
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from protocon.engine.loop.trackers import PROJECT, Trackers
from protocon.errors import ConfigError
from protocon.settings.config import RunConfig, build_config

ROWS: list[dict[str, float]] = [{"epoch": n, "loss_x": 1.0 / (n + 1), "retention": 0.1 * n} for n in range(4)]


def config(*names: str) -> RunConfig:
    return build_config(overrides=[f"run.loggers={json.dumps(names)}", "tensorboard=false", "run.seed=7"])


def log(folder: Path, name: str, rows: list[dict[str, float]]) -> None:
    folder.mkdir(exist_ok=True)
    with Trackers(folder, config(name), enabled=True) as trackers:
        for row in rows:
            trackers.write(row)


@pytest.mark.filterwarnings("ignore")  # of the packages
def test_mlflow_has_one_run_with_all_epochs_and_settings_also_after_a_resume(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mlflow = pytest.importorskip("mlflow", reason="mlflow is not installed: pip install 'protocon[mlflow]'")
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    log(tmp_path / "run", "mlflow", ROWS[:2])
    log(tmp_path / "run", "mlflow", ROWS[2:])
    client = mlflow.tracking.MlflowClient(tracking_uri=(tmp_path / "run" / "mlflow" / "mlruns").as_uri())
    (run,) = client.search_runs([client.get_experiment_by_name(PROJECT).experiment_id])
    assert (run.info.run_name, run.info.status) == ("run", "FINISHED")
    assert run.data.params["run.seed"] == "7"
    kept = client.get_metric_history(run.info.run_id, "loss_x")
    assert [(point.step, point.value) for point in kept] == [(row["epoch"], row["loss_x"]) for row in ROWS]


@pytest.mark.filterwarnings("ignore")
def test_wandb_writes_its_files_offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("wandb", reason="wandb is not installed: pip install 'protocon[wandb]'")
    monkeypatch.setenv("WANDB_MODE", "offline")
    for name in ("WANDB_CONFIG_DIR", "WANDB_CACHE_DIR", "WANDB_DATA_DIR"):
        monkeypatch.setenv(name, str(tmp_path / "wandb's own"))
    log(tmp_path / "run", "wandb", ROWS)
    (kept,) = (tmp_path / "run" / "wandb").glob("offline-run-*/run-*.wandb")
    waited = time.monotonic() + 20
    while b"loss_x" not in (content := kept.read_bytes()) and time.monotonic() < waited:
        time.sleep(0.2)  # a process of wandb's own writes it
    assert (tmp_path / "run" / "wandb" / "run_id").read_text() in kept.name
    for text in (b"loss_x", b"retention", b"run.seed", PROJECT.encode()):
        assert text in content


def test_a_logger_that_is_not_installed_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("mlflow", "wandb"):
        monkeypatch.setitem(sys.modules, name, None)
        with pytest.raises(ConfigError, match=rf"pip install 'protocon\[{name}\]'"):
            log(tmp_path / "run", name, [])


def test_others_than_the_first_process_log_nothing_and_names_are_checked(tmp_path: Path) -> None:
    with Trackers(tmp_path, config("mlflow", "wandb"), enabled=False) as trackers:
        trackers.write(ROWS[0])
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ConfigError, match="loggers"):
        config("comet")
    assert isinstance(config("mlflow").run.loggers, tuple)
    dumped: Any = config("mlflow").model_dump(mode="json")["run"]["loggers"]
    assert dumped == ["mlflow"]
