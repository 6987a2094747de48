"""A run folder belongs to one living process."""

import errno
import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from protocon.errors import RunError
from protocon.runs.layout import LOCK
from protocon.runs.lock import locked, started

HOLD = """
import sys
from pathlib import Path
from protocon.runs.lock import locked
with locked(Path(sys.argv[1]), print):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holder(tmp_path: Path) -> "subprocess.Popen[str]":
    """Another process that holds the lock of tmp_path."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def end(process: "subprocess.Popen[str]") -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.close()
    process.wait(timeout=30)
    process.stdout.close()


def test_a_living_process_keeps_others_out_and_a_killed_one_does_not(
    tmp_path: Path, holder: "subprocess.Popen[str]"
) -> None:
    content = json.loads((tmp_path / LOCK).read_text())
    assert content == {"pid": holder.pid, "host": socket.gethostname(), "started": started(holder.pid)}
    with pytest.raises(RunError, match=f"in use by process {holder.pid}"), locked(tmp_path, print):
        pass
    holder.kill()
    end(holder)
    said: list[str] = []
    with locked(tmp_path, said.append):
        assert json.loads((tmp_path / LOCK).read_text())["pid"] == os.getpid()
    assert len(said) == 1
    assert f"process {holder.pid}" in said[0]
    assert "taking over" in said[0]
    assert not (tmp_path / LOCK).exists()


def test_a_process_that_ends_well_leaves_nothing(tmp_path: Path, holder: "subprocess.Popen[str]") -> None:
    end(holder)
    assert list(tmp_path.iterdir()) == []
    said: list[str] = []
    with locked(tmp_path, said.append), pytest.raises(RunError, match="in use by process"), locked(tmp_path, print):
        pass
    assert said == []


def test_where_the_file_system_has_no_locks_the_process_itself_is_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, holder: "subprocess.Popen[str]"
) -> None:
    def unsupported(_handle: int, _how: int) -> None:
        raise OSError(errno.ENOTSUP, "Operation not supported")

    monkeypatch.setattr("fcntl.flock", unsupported)
    with pytest.raises(RunError, match=f"in use by process {holder.pid}"), locked(tmp_path, print):
        pass
    holder.kill()
    end(holder)
    said: list[str] = []
    with locked(tmp_path, said.append):
        pass
    assert "taking over" in said[0]
    # The number of a dead process may belong to another one by now: its start tells them apart.
    file = tmp_path / LOCK
    file.write_text(json.dumps({"pid": os.getpid(), "host": socket.gethostname(), "started": 1}))
    with locked(tmp_path, said.append):
        pass
    # Of another host's processes nothing can be known.
    file.write_text(json.dumps({"pid": 1, "host": "elsewhere", "started": 1}))
    with pytest.raises(RunError, match=f"elsewhere[\\s\\S]*remove {file}"), locked(tmp_path, print):
        pass


@pytest.mark.parametrize("content", [b"", b"nonsense", b"[]", b'{"pid": "x"}', b"\xff" * 9, b'{"pid": 1}'])
def test_a_lock_file_that_says_nothing_holds_nobody_up(tmp_path: Path, content: bytes) -> None:
    (tmp_path / LOCK).write_bytes(content)
    with locked(tmp_path, print):
        pass
    assert list(tmp_path.iterdir()) == []
