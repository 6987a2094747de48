"""Run the command line in this process."""

import json
import sys
from dataclasses import dataclass
from typing import Any

import pytest

from protocon.cli import main


@dataclass(frozen=True)
class Finished:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """Standard output, which must be one JSON object and nothing else."""
        content: dict[str, Any] = json.loads(self.out)
        return content


def run_command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: str) -> Finished:
    """`protocon ARGUMENTS`, with its exit code and output."""
    monkeypatch.setattr(sys, "argv", ["protocon", *arguments])
    capsys.readouterr()
    try:
        main()
        code = 0
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else 0 if stop.code is None else 1
    captured = capsys.readouterr()
    return Finished(code, captured.out, captured.err)
