"""A run's folder: what was asked, on what machine, what happened, what came out. Never overwritten."""

import errno
import glob
import json
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from itertools import count
from pathlib import Path
from typing import Any

import torch

from protocon.base.atomic import append_line, cannot_write, sync_folder, unfinished_name, write_bytes
from protocon.data.labels.label_split import Split
from protocon.data.labels.split_file import save_split
from protocon.errors import ConfigError, RunError
from protocon.runs import layout
from protocon.settings.config import RunConfig, to_yaml, validate
from protocon.settings.legacy import with_current_result, with_old_values
from protocon.settings.recipe import parse_yaml
from protocon.settings.resolved_config import ResolvedConfig

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


_ABANDONED_SECONDS = 24 * 3600


class RunFolder:
    """Paths and files of one run."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def checkpoints(self) -> Path:
        """Where checkpoints are."""
        return self.path / layout.CHECKPOINTS

    @property
    def split_file(self) -> Path:
        """Which images are labelled."""
        return self.path / layout.SPLIT

    @property
    def data_file(self) -> Path:
        """Every file of the data, used or skipped, and what `auto` chose."""
        return self.path / layout.DATA

    @property
    def model_file(self) -> Path:
        """The trained network (averaged weights)."""
        return self.path / layout.MODEL

    @property
    def cross_check_file(self) -> Path:
        """Given labels, each held out of one more run, and what that run predicted."""
        return self.path / layout.CROSS_CHECK

    @property
    def held_out(self) -> Path:
        """Finished groups of held-out labels, for a run that is interrupted among them."""
        return self.path / layout.HELD_OUT

    @property
    def labels_file(self) -> Path:
        """The label of every image, and whether to look at it."""
        return self.path / layout.LABELS

    @property
    def opinions_file(self) -> Path:
        """The opinions behind every label, row by row as in labels.csv."""
        return self.path / layout.OPINIONS

    @property
    def metrics_file(self) -> Path:
        """One JSON object per epoch; the same in every repetition of a run."""
        return self.path / layout.METRICS

    @property
    def classes_file(self) -> Path:
        """Pseudo-label accuracy and cluster purity of every class, epoch by epoch, where the truth is known."""
        return self.path / layout.CLASSES

    @property
    def clusters_file(self) -> Path:
        """Members and label of every cluster at the end, of methods that have clusters."""
        return self.path / layout.CLUSTERS

    @property
    def evaluation_file(self) -> Path:
        """Which classes of the test set are taken for which, at the end."""
        return self.path / layout.EVALUATION

    @property
    def report_file(self) -> Path:
        """The run on one page."""
        return self.path / layout.REPORT

    @property
    def timings_file(self) -> Path:
        """Seconds per epoch, kept apart because they never repeat."""
        return self.path / layout.TIMINGS

    @property
    def result_file(self) -> Path:
        """The summary that `train --json` prints; there once the run is finished."""
        return self.path / layout.RESULT

    @property
    def warnings_file(self) -> Path:
        """What the guards noticed: rows of epoch, kind, message and advice."""
        return self.path / layout.WARNINGS

    @property
    def changes_file(self) -> Path:
        """Settings that were changed when the run was resumed, and when."""
        return self.path / layout.CHANGES

    def config(self) -> RunConfig:
        """The settings of the run, as they were asked for."""
        return self._settings(self.path / layout.CONFIG)

    def resolved(self) -> RunConfig:
        """The settings of the run without `auto`: what it is resumed with, whatever `auto` may mean by then."""
        return self._settings(self.path / layout.RESOLVED)

    def _settings(self, file: Path) -> RunConfig:
        if not file.is_file():
            raise RunError(f"{self.path} is not a run folder that can be used: it has no {file.name}")
        try:
            settings = parse_yaml(file.read_text(encoding="utf-8"), str(file))
            return validate(with_old_values(settings) if file.name == "resolved.yaml" else settings)
        except (ConfigError, OSError, UnicodeDecodeError) as error:
            raise RunError(f"the settings of {self.path} cannot be read from {file.name}: {error}") from error

    def finished(self) -> bool:
        """Whether the run got to its end."""
        return self.result_file.is_file()

    def result(self) -> dict[str, Any]:
        """The summary of a finished run."""
        try:
            content: dict[str, Any] = with_current_result(json.loads(self.result_file.read_text(encoding="utf-8")))
        except (OSError, ValueError) as error:
            raise RunError(f"{self.result_file} cannot be read: {error}. Remove it; --resume writes it anew") from error
        return content

    def metrics(self) -> list[dict[str, Any]]:
        """All epochs' metrics."""
        return [json.loads(line) for line in _whole_lines(self.metrics_file)]

    def warnings(self) -> list[dict[str, Any]]:
        """Everything that the guards noticed."""
        return [json.loads(line) for line in _whole_lines(self.warnings_file)]

    def append(self, file: Path, row: dict[str, Any]) -> None:
        """Add one line to a JSONL file."""
        append_line(file, json.dumps(row))

    def unfinished(self) -> list[Path]:
        """Files that a killed process had begun to write."""
        return [*self.path.glob(unfinished_name("*")), *self.path.glob(f"*/{unfinished_name('*')}")]

    def remove(self) -> None:
        """Remove the folder and all that is in it. For one that this process made, before anything was learnt."""
        shutil.rmtree(self.path, ignore_errors=True)

    def clear_unfinished(self) -> None:
        """Remove them: they never got their names, so nobody will ask for them."""
        for file in self.unfinished():
            file.unlink(missing_ok=True)

    def keep_epochs(self, epochs: int, say: Callable[[str], None]) -> None:
        """Drop lines of epochs that the newest checkpoint does not know: a resumed run repeats them."""
        for file in (self.metrics_file, self.classes_file, self.warnings_file, self.timings_file):
            if not file.is_file():
                continue
            kept = "".join(line + "\n" for line in _whole_lines(file) if json.loads(line)["epoch"] < epochs).encode()
            if kept != file.read_bytes():
                write_bytes(file, kept)
        known = len(self.metrics())
        if known < epochs:
            say(f"{self.metrics_file} has {known} of the {epochs} epochs that are done: lines are missing from it")

    def write_json(self, file: Path, content: dict[str, Any]) -> None:
        """Write a JSON file, all or nothing."""
        try:
            text = json.dumps(content, indent=2, ensure_ascii=False).encode()
        except UnicodeEncodeError:  # a class whose folder's name is not valid UTF-8
            text = json.dumps(content, indent=2).encode()
        write_bytes(file, text + b"\n")


def create(out: Path, name: str, config: RunConfig, split: Split, *, resolved: ResolvedConfig) -> RunFolder:
    """A new folder `out/name`, or `name-2`, `name-3`… where that exists.

    It has env.json, split.json, config.yaml (as asked) and resolved.yaml (without `auto`). It is made under another
    name and renamed: a crash in between leaves nothing that looks like a run.

    Args:
        out: folder that holds run folders.
        name: of the run folder.
        config: as asked for.
        split: which images are labelled.
        resolved: the settings without `auto`.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
        _clear_abandoned(out, name)
        aside = Path(tempfile.mkdtemp(prefix=f".{name}.new-", dir=out))
        aside.chmod(0o755)
    except OSError as error:
        raise cannot_write(out / name, error, "no run folder was made") from error
    try:
        folder = RunFolder(aside)
        folder.checkpoints.mkdir()
        folder.write_json(aside / layout.ENVIRONMENT, environment())
        save_split(split, folder.split_file)
        write_bytes(aside / layout.RESOLVED, to_yaml(resolved).encode())
        write_bytes(aside / layout.CONFIG, to_yaml(config).encode())
        path = _settle(aside, out, name)
        sync_folder(out)
    except (OSError, RunError) as error:
        shutil.rmtree(aside, ignore_errors=True)
        if isinstance(error, OSError):
            raise cannot_write(out / name, error, "no run folder was made") from error
        raise
    return RunFolder(path)


def _clear_abandoned(out: Path, name: str) -> None:
    """Remove folders of this name that a killed process never finished making, once nobody can be at it any more."""
    for path in out.glob(f".{glob.escape(name)}.new-*"):
        if time.time() - path.stat().st_mtime > _ABANDONED_SECONDS:
            shutil.rmtree(path, ignore_errors=True)


def _settle(aside: Path, out: Path, name: str) -> Path:
    """Give a folder its name, or the next one that is free. A folder with something in it is never replaced."""
    for number in count(1):
        path = out / (name if number == 1 else f"{name}-{number}")
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            continue
        try:
            return aside.rename(path)
        except OSError as error:
            if error.errno not in (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR):  # somebody was quicker
                raise
    raise AssertionError  # count never ends


def newest_run(out: Path, name: str) -> RunFolder | None:
    """The newest folder called `name` (or `name-2`, …), None if there is none; refuses one that is not a run."""
    numbered = [(1, out / name)] + [
        (int(path.name[len(name) + 1 :]), path)
        for path in out.glob(f"{glob.escape(name)}-*")
        if path.name[len(name) + 1 :].isdecimal()
    ]
    existing = [path for _, path in sorted(numbered) if path.is_dir() and any(path.iterdir())]
    if not existing:
        return None
    folder = RunFolder(existing[-1])
    needed = (layout.CONFIG,) if folder.finished() else (layout.CONFIG, layout.RESOLVED, layout.SPLIT)
    missing = [file for file in needed if not (folder.path / file).is_file()]
    if missing:
        raise RunError(
            f"{folder.path} exists but cannot be resumed: it lacks {', '.join(missing)}. Put it back, or remove or "
            "rename the folder, or choose another --name"
        )
    return folder


def _whole_lines(file: Path) -> list[str]:
    """Lines of a JSONL file up to one that was torn by a crash; whatever follows belongs to that."""
    lines: list[str] = []
    if not file.is_file():
        return lines
    for line in file.read_bytes().decode("utf-8", "replace").split("\n"):
        try:
            row = json.loads(line)
        except ValueError:
            break
        if not isinstance(row, dict) or not isinstance(row.get("epoch"), int):
            break
        lines.append(line)
    return lines


def environment() -> dict[str, Any]:
    """Versions, machine and command: what somebody needs to repeat the run."""
    return {
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": sys.argv,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "threads": torch.get_num_threads(),
        "cuda": torch.version.cuda if torch.cuda.is_available() else None,
        "packages": dict(_versions()),
    }


@cache
def _versions() -> tuple[tuple[str, str], ...]:
    """Of the packages that a result depends on; once per process, because each is looked for on the disk."""
    versions = []
    for package in _PACKAGES:
        try:
            versions.append((package, metadata.version(package)))
        except metadata.PackageNotFoundError:
            versions.append((package, "not installed"))
    return tuple(versions)
