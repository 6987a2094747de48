"""A disk that is full stops a run with a clear message; what was saved is whole, and the run goes on later."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from protocon.base.atomic import append_line
from protocon.engine.loop.checkpoint import newest_checkpoint
from protocon.engine.loop.tensorboard_log import ScalarLog
from protocon.engine.run import fit, resume_run
from protocon.errors import DataError, RunError
from protocon.runs.run_folder import RunFolder
from protocon.settings.config import build_config
from tests.engine.kills import assert_same_run
from tests.engine.photos import SETTINGS, install, make_photos
from tests.engine.runs import quiet
from tests.engine.test_pins import config_for

DISK = 2**22


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A real file system of four mebibytes."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", str(place)]
    try:
        made = os.name == "posix" and subprocess.run(mount, capture_output=True, check=False).returncode == 0
    except OSError:
        made = False
    if not made:
        pytest.skip("a small file system cannot be mounted here (that takes root, on Linux)")
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


def fill(disk: Path, leave: int) -> Path:
    """Take all room but `leave` bytes."""
    ballast = disk / "ballast"
    status = os.statvfs(disk)
    ballast.write_bytes(bytes(max(0, status.f_bavail * status.f_frsize - leave)))
    return ballast


@pytest.mark.parametrize("room", [4096, 12288, 40960, 90112, 150000])
def test_a_full_disk_stops_the_run_and_the_run_goes_on_once_there_is_room(
    disk: Path, tmp_path: Path, room: int
) -> None:
    """Wherever the room ends: in the run folder's first files, a checkpoint, a line of metrics, the model or labels."""
    config = config_for(tmp_path, "tensorboard=true")
    whole = Path(fit(config, out=tmp_path / "whole", name="run", console=quiet())["run"])
    ballast = fill(disk, room)
    with pytest.raises(RunError, match="No space left on device") as stopped:
        fit(config, out=disk, name="run", console=quiet())
    assert "Free some space" in str(stopped.value)
    run = disk / "run"
    assert newest_checkpoint(run / "checkpoints")[1] == {}  # nothing torn
    with pytest.raises(RunError, match="No space left on device"):  # still full: no harm in trying
        fit(config, out=disk, name="run", resume=True, console=quiet())
    ballast.unlink()
    fit(config, out=disk, name="run", resume=True, console=quiet())
    assert_same_run(whole, run)


def test_a_frozen_run_stops_and_resumes_wherever_the_room_ends(
    disk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the features' cache on the same disk: in the features, the training, the model or the labels."""
    make_photos(tmp_path)
    install(tmp_path / "packages", monkeypatch)
    config = build_config(
        settings={
            "data": {"name": "folder", "root": tmp_path / "photos", "labels": tmp_path / "labels.csv"},
            "network": {"frozen": True},
            "run": {"report": False},
        },
        overrides=SETTINGS,
    )
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "elsewhere"))
    whole = Path(fit(config, out=tmp_path / "whole", name="run", console=quiet())["run"])
    monkeypatch.setenv("XDG_CACHE_HOME", str(disk / "cache"))
    for room in (8192, 65_536, 500_000):
        ballast = fill(disk, room)
        with pytest.raises((RunError, DataError), match="No space left on device"):
            fit(config, out=disk, name="run", resume=True, console=quiet())
        ballast.unlink()
    fit(config, out=disk, name="run", resume=True, console=quiet())
    assert_same_run(whole, disk / "run")


def test_every_kind_of_file_says_so(disk: Path) -> None:
    fill(disk, 0)
    folder = RunFolder(disk)
    with pytest.raises(RunError, match=r"cannot write .*lines\.jsonl: No space left"):
        append_line(disk / "lines.jsonl", "x" * 10)
    with pytest.raises(RunError, match=r"cannot write .*file\.json: No space left"):
        folder.write_json(disk / "file.json", {"a": 1})
    with (
        pytest.raises(RunError, match=r"cannot write .*tfevents.*: No space left"),
        ScalarLog(disk, enabled=True) as scalars,
    ):
        scalars.write({"epoch": 0, "loss": 1.0})
    assert not list(disk.glob(".*"))


def test_a_limit_on_file_sizes_is_no_traceback_either(tmp_path: Path) -> None:
    """EFBIG, where a whole disk cannot be filled: also without root."""
    resource = pytest.importorskip("resource")
    config = config_for(tmp_path)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, before[1]))
    try:
        with pytest.raises(RunError, match="File too large"):
            fit(config, out=tmp_path / "runs", name="run", console=quiet())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    run = RunFolder(tmp_path / "runs" / "run")
    assert list(run.checkpoints.iterdir()) == []
    resume_run(run, quiet())
    whole = Path(fit(config, out=tmp_path / "whole", name="run", console=quiet())["run"])
    assert_same_run(whole, run.path)
