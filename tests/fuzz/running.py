"""Throw inputs at a target: a result or one of our errors must come back, soon, and nothing be written elsewhere."""

import os
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as start_from

from protocon.errors import ProtoConError
from tests.fuzz.targets import Target

SECONDS = 20.0
"""An input that takes longer hangs; generous, because machines are busy."""


class HangError(BaseException):
    """It did not come back. Not an Exception, lest a target catch it."""


@dataclass
class Tally:
    """What became of a target's inputs."""

    results: int = 0
    errors: int = 0
    slowest: float = 0.0
    kinds: dict[str, int] = field(default_factory=dict)


def throw(target: Target, count: int, *, shrink: bool = True, seed: int | None = None) -> Tally:
    """Run a target on `count` inputs; raises what it should not have raised, for the smallest such input.

    Args:
        target: the way in.
        count: of inputs.
        shrink: look for the smallest input that shows a finding.
        seed: of other inputs; the same ones every time without it.
    """
    tally = Tally()
    phases = (Phase.generate, Phase.shrink) if shrink else (Phase.generate,)

    @settings(
        max_examples=count,
        deadline=None,
        derandomize=seed is None,
        database=None,
        phases=phases,
        suppress_health_check=list(HealthCheck),
    )
    @given(target.inputs)
    def one(content: Any) -> None:
        with tempfile.TemporaryDirectory() as folder:
            began = time.monotonic()
            try:
                with _limit(SECONDS):
                    target.run(content, Path(folder))
                tally.results += 1
            except HangError:
                raise AssertionError(f"no answer within {SECONDS} seconds: {repr(content)[:500]}") from None
            except ProtoConError as error:
                tally.errors += 1
                kind = type(error).__name__
                tally.kinds[kind] = tally.kinds.get(kind, 0) + 1
            tally.slowest = max(tally.slowest, time.monotonic() - began)

    if seed is not None:
        one = start_from(seed)(one)
    one()
    return tally


@contextmanager
def _limit(seconds: float) -> Iterator[None]:
    def late(_number: int, _frame: FrameType | None) -> None:
        raise HangError

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def nothing_else_written(empty: Path) -> Iterator[None]:
    """Work in an empty folder, which is also home and place of temporary files; it must be empty afterwards."""
    before = Path.cwd(), os.environ.get("HOME"), tempfile.tempdir
    home, work, temporary = (empty / name for name in ("home", "work", "temporary"))
    for folder in (home, work, temporary):
        folder.mkdir()
    os.chdir(work)
    os.environ["HOME"], tempfile.tempdir = str(home), str(temporary)
    try:
        yield
        left = [str(path) for path in empty.rglob("*") if path not in (home, work, temporary)]
        assert not left, f"written elsewhere: {left}"
    finally:
        os.chdir(before[0])
        if before[1] is not None:
            os.environ["HOME"] = before[1]
        tempfile.tempdir = before[2]
