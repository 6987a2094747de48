"""Metrics for other programs, beside the JSONL that is the record: TensorBoard, MLflow, Weights & Biases.

One row of numbers per epoch goes to each logger that is asked for. MLflow writes to the tracking server that the user
has set up (`MLFLOW_TRACKING_URI`), else to files in the run folder; Weights & Biases follows its own settings
(`WANDB_MODE=offline` and so on). A resumed run continues the run that it began there.
"""

import os
from collections.abc import Callable
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

from protocon.engine.loop.tensorboard_log import ScalarLog
from protocon.errors import ConfigError
from protocon.settings.config import RunConfig, flat_settings

_INSTALL = {"mlflow": "pip install 'protocon[mlflow]'", "wandb": "pip install 'protocon[wandb]'"}
PROJECT = "protocon"
"""What runs are grouped under."""


class Tracker(Protocol):
    """Takes one row of numbers per epoch."""

    def __enter__(self) -> Self: ...

    def write(self, row: dict[str, float]) -> None:
        """One epoch's numbers."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class Trackers:
    """All loggers of a run as one.

    Args:
        folder: the run folder.
        config: of the run; `run.tensorboard` and `run.loggers` say which.
        enabled: False on all processes but the first.
        first_epoch: where a resumed run starts.
    """

    def __init__(self, folder: Path, config: RunConfig, *, enabled: bool, first_epoch: int = 0) -> None:
        self._all: list[Tracker] = [
            ScalarLog(folder, enabled=enabled and config.run.tensorboard, first_epoch=first_epoch)
        ]
        if enabled:
            kinds: dict[str, Callable[[Path, RunConfig], Tracker]] = {"mlflow": MlflowLog, "wandb": WandbLog}
            self._all += [kinds[name](folder, config) for name in dict.fromkeys(config.run.loggers)]
        self._stack = ExitStack()

    def __enter__(self) -> "Trackers":
        for tracker in self._all:
            self._stack.enter_context(tracker)
        return self

    def write(self, row: dict[str, float]) -> None:
        """One epoch's numbers to each."""
        for tracker in self._all:
            tracker.write(row)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)


def _numbers(row: dict[str, float]) -> dict[str, float]:
    return {name: float(value) for name, value in row.items() if name != "epoch"}


class MlflowLog:
    """A run of MLflow, named as the run folder, in the experiment `protocon`."""

    def __init__(self, folder: Path, config: RunConfig) -> None:
        self._folder, self._config = folder.resolve(), config
        self._mark = folder / "mlflow" / "run_id"

    def __enter__(self) -> "MlflowLog":
        mlflow = _imported("mlflow")
        self._mark.parent.mkdir(exist_ok=True)
        uri = os.environ.get("MLFLOW_TRACKING_URI")
        if not uri:  # files, which need no database but MLflow wants to be asked for
            os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")
            uri = (self._mark.parent / "mlruns").resolve().as_uri()
        self._client = mlflow.tracking.MlflowClient(tracking_uri=uri)
        if self._mark.is_file():
            self._run = self._mark.read_text(encoding="utf-8").strip()
        else:
            found = self._client.get_experiment_by_name(PROJECT)
            experiment = found.experiment_id if found else self._client.create_experiment(PROJECT)
            run = self._client.create_run(experiment, run_name=self._folder.name)
            self._run = str(run.info.run_id)
            for key, value in flat_settings(self._config).items():
                self._client.log_param(self._run, key, value)
            self._mark.write_text(self._run, encoding="utf-8")
        return self

    def write(self, row: dict[str, float]) -> None:
        """One epoch's numbers."""
        for name, value in _numbers(row).items():
            self._client.log_metric(self._run, name, value, step=int(row["epoch"]))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        status = "FINISHED" if kind is None else "KILLED" if issubclass(kind, KeyboardInterrupt) else "FAILED"
        self._client.set_terminated(self._run, status=status)


class WandbLog:
    """A run of Weights & Biases, named as the run folder, in the project `protocon`."""

    def __init__(self, folder: Path, config: RunConfig) -> None:
        self._folder, self._config = folder.resolve(), config
        self._mark = folder / "wandb" / "run_id"

    def __enter__(self) -> "WandbLog":
        wandb = _imported("wandb")
        self._mark.parent.mkdir(exist_ok=True)
        known = self._mark.read_text(encoding="utf-8").strip() if self._mark.is_file() else None
        self._run = wandb.init(
            project=PROJECT,
            name=self._folder.name,
            dir=str(self._folder),
            id=known,
            resume="allow" if known else None,
            config=flat_settings(self._config),
            settings=wandb.Settings(silent=True, console="off"),
        )
        self._mark.write_text(str(self._run.id), encoding="utf-8")
        return self

    def write(self, row: dict[str, float]) -> None:
        """One epoch's numbers."""
        self._run.log(_numbers(row), step=int(row["epoch"]))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._run.finish(exit_code=0 if kind is None else 1)


def _imported(name: str) -> Any:
    """The logger's package, which is not among those that every install brings."""
    try:
        return import_module(name)
    except ImportError as error:
        raise ConfigError(f"run.loggers names {name}, which is not installed: {_INSTALL[name]}") from error
