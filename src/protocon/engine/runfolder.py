"""A run's folder: what was asked, on what machine, what happened, what came out. Never overwritten."""

import json
import platform
import sys
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import torch

from protocon.config import RunConfig, differences, parse_yaml, to_yaml, validate
from protocon.data.splitfile import save_split
from protocon.data.splits import Split
from protocon.engine.checkpoint import write_bytes
from protocon.errors import RunError

_PACKAGES = (
    "protocon",
    "torch",
    "torchvision",
    "timm",
    "lightning-fabric",
    "numpy",
    "scikit-learn",
    "pillow",
)


class RunFolder:
    """Paths and files of one run."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def checkpoints(self) -> Path:
        """Where checkpoints are."""
        return self.path / "checkpoints"

    @property
    def split_file(self) -> Path:
        """Which images are labelled."""
        return self.path / "split.json"

    @property
    def model_file(self) -> Path:
        """The trained network (averaged weights)."""
        return self.path / "model.safetensors"

    @property
    def labels_file(self) -> Path:
        """Labels of every image, with the opinions behind them."""
        return self.path / "labels.csv"

    @property
    def metrics_file(self) -> Path:
        """One JSON object an epoch; the same in every repetition of a run."""
        return self.path / "metrics.jsonl"

    @property
    def classes_file(self) -> Path:
        """Pseudo-label accuracy and cluster purity of every class, epoch by epoch, where the truth is known."""
        return self.path / "classes.jsonl"

    @property
    def clusters_file(self) -> Path:
        """Members and label of every cluster at the end, of methods that have clusters."""
        return self.path / "clusters.json"

    @property
    def evaluation_file(self) -> Path:
        """Which classes of the test set are taken for which, at the end."""
        return self.path / "evaluation.json"

    @property
    def timings_file(self) -> Path:
        """Seconds an epoch, kept apart because they never repeat."""
        return self.path / "timings.jsonl"

    @property
    def result_file(self) -> Path:
        """The summary that `train --json` prints; there once the run is finished."""
        return self.path / "result.json"

    def config(self) -> RunConfig:
        """The settings of the run."""
        file = self.path / "config.yaml"
        if not file.is_file():
            raise RunError(f"{self.path} is not a run folder: it has no config.yaml")
        return validate(parse_yaml(file.read_text(encoding="utf-8"), str(file)))

    def finished(self) -> bool:
        """Whether the run got to its end."""
        return self.result_file.is_file()

    def result(self) -> dict[str, Any]:
        """The summary of a finished run."""
        content: dict[str, Any] = json.loads(self.result_file.read_text(encoding="utf-8"))
        return content

    def metrics(self) -> list[dict[str, Any]]:
        """All epochs' metrics."""
        if not self.metrics_file.is_file():
            return []
        return [json.loads(line) for line in self.metrics_file.read_text(encoding="utf-8").splitlines()]

    def append(self, file: Path, row: dict[str, Any]) -> None:
        """Add one line to a JSONL file."""
        with file.open("a", encoding="utf-8") as out:
            out.write(json.dumps(row) + "\n")

    def keep_epochs(self, epochs: int) -> None:
        """Drop lines of epochs that the newest checkpoint does not know: a resumed run repeats them."""
        for file in (self.metrics_file, self.classes_file, self.timings_file):
            if not file.is_file():
                continue
            kept = []
            for line in file.read_text(encoding="utf-8").splitlines():
                try:
                    row = json.loads(line)
                except ValueError:
                    break  # a line torn by a crash; whatever follows belongs to it
                if row["epoch"] < epochs:
                    kept.append(line + "\n")
            write_bytes(file, "".join(kept).encode())

    def write_json(self, file: Path, content: dict[str, Any]) -> None:
        """Write a JSON file, all or nothing."""
        write_bytes(file, (json.dumps(content, indent=2, ensure_ascii=False) + "\n").encode())


def create(out: Path, name: str, config: RunConfig, split: Split) -> RunFolder:
    """A new folder `out/name`, or `name-2`, `name-3`… where that exists, with env.json, split.json and config.yaml.

    The config comes last: a folder without one is not a run, so a crash in between leaves nothing that looks like one.
    """
    path = out / name
    number = 2
    while True:
        try:
            path.mkdir(parents=True)
            break
        except FileExistsError:
            path = out / f"{name}-{number}"
            number += 1
        except OSError as error:
            raise RunError(f"cannot create the run folder {path}: {error.strerror or error}") from error
    folder = RunFolder(path)
    folder.checkpoints.mkdir()
    folder.write_json(path / "env.json", environment())
    save_split(split, folder.split_file)
    write_bytes(path / "config.yaml", to_yaml(config).encode())
    return folder


def find_resumable(out: Path, name: str, config: RunConfig) -> RunFolder | None:
    """The newest run called `name` (or `name-2`, …); refuses one with other settings."""
    numbered = [(1, out / name)] + [
        (int(path.name[len(name) + 1 :]), path)
        for path in out.glob(f"{name}-*")
        if path.name[len(name) + 1 :].isdigit()
    ]
    existing = [path for _, path in sorted(numbered) if (path / "config.yaml").is_file()]
    if not existing:
        return None
    folder = RunFolder(existing[-1])
    check_same_config(folder, config)
    return folder


def check_same_config(folder: RunFolder, config: RunConfig) -> None:
    """Refuse to go on with a run under other settings than it began with."""
    changed = differences(folder.config(), config)
    if changed:
        raise RunError(
            f"{folder.path} was started with other settings, so it cannot go on with these:\n  "
            + "\n  ".join(changed)
            + "\nResume with the same settings, or leave --resume out to start a new run"
        )


def environment() -> dict[str, Any]:
    """Versions, machine and command: what somebody needs to repeat the run."""
    versions = {}
    for package in _PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            versions[package] = "not installed"
    return {
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": sys.argv,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "threads": torch.get_num_threads(),
        "cuda": torch.version.cuda if torch.cuda.is_available() else None,
        "packages": versions,
    }
