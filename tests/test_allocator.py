"""Freed memory is used again: measured by page faults, in processes of their own."""

import json
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from protocon.base.allocator import environment_that_keeps_memory

pytestmark = pytest.mark.skipif(
    platform.system() != "Linux" or platform.libc_ver()[0] != "glibc", reason="the settings are those of Linux's glibc"
)

SCRIPT = """
import json, os, resource, sys
from protocon.base.allocator import restart_to_keep_memory
before = os.getpid()
restart_to_keep_memory()
import torch

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    torch.ones(25_000_000)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

print(json.dumps({"faults": [faults() for _ in range(4)], "arguments": sys.argv[1:], "pid": os.getpid()}))
"""


def run(folder: Path, **environment: str) -> dict[str, Any]:
    file = folder / "script.py"
    file.write_text(SCRIPT)
    clean = {k: v for k, v in os.environ.items() if k not in ("PROTOCON_ALLOCATOR", "GLIBC_TUNABLES")}
    command = [sys.executable, str(file), "a b", "--c=ü"]
    with subprocess.Popen(command, env=clean | environment, stdout=subprocess.PIPE, text=True) as process:
        output = process.communicate(timeout=120)[0]
    content: dict[str, Any] = json.loads(output)
    assert content["pid"] == process.pid
    assert content["arguments"] == ["a b", "--c=ü"]
    return content


def test_memory_of_a_freed_tensor_is_used_for_the_next(tmp_path: Path) -> None:
    usual = run(tmp_path, PROTOCON_ALLOCATOR="system")["faults"]
    assert min(usual) > 1000  # 100 MB of fresh pages every time
    assert max(run(tmp_path)["faults"][1:]) < min(usual) / 20


def test_settings_of_the_user_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PROTOCON_ALLOCATOR", raising=False)
    monkeypatch.setenv("GLIBC_TUNABLES", "glibc.malloc.arena_max=1")
    environment = environment_that_keeps_memory()
    assert environment is not None
    assert environment["GLIBC_TUNABLES"].startswith("glibc.malloc.arena_max=1:glibc.malloc.mmap_max=0")
    monkeypatch.setenv("PROTOCON_ALLOCATOR", environment["PROTOCON_ALLOCATOR"])
    assert environment_that_keeps_memory() is None  # once is enough
