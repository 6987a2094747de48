"""The end of a program: quick, and with nothing lost."""

import subprocess
import sys
import threading
from collections.abc import Callable

import pytest

from protocon.base import leave as leave_module
from protocon.base.leave import leave


class LeftError(Exception):
    """In place of the end of this process."""


@pytest.fixture
def codes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Exit codes with which the process would have ended."""
    seen: list[int] = []

    def end(code: int) -> None:
        seen.append(code)
        raise LeftError

    monkeypatch.setattr("os._exit", end)
    monkeypatch.setattr("atexit._run_exitfuncs", lambda: None)  # pytest's own are for later
    monkeypatch.setattr("sys.gettrace", lambda: None)
    monkeypatch.setattr("sys.getprofile", lambda: None)
    monkeypatch.setattr(threading, "enumerate", lambda: [threading.main_thread()])
    return seen


@pytest.mark.parametrize(("code", "told"), [(None, 0), (0, 0), (2, 2), (True, 1), (-1, 255)])
def test_the_exit_code_is_pythons(codes: list[int], code: object, told: int) -> None:
    with pytest.raises(LeftError):
        leave(code)
    assert codes == [told]


def a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading, "enumerate", lambda: [threading.main_thread(), threading.Thread()])


def a_profiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.getprofile", lambda: print)


def a_debugger(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.gettrace", lambda: print)


def a_group(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leave_module, "_in_a_group", lambda: True)


def a_closed_output(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise BrokenPipeError

    monkeypatch.setattr(leave_module, "_write_out", fail)


@pytest.mark.parametrize("needs_python", [a_thread, a_profiler, a_debugger, a_group, a_closed_output])
def test_what_still_needs_python_gets_the_usual_end(
    codes: list[int], needs_python: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    needs_python(monkeypatch)
    leave(0)
    assert codes == []


def test_a_message_for_an_exit_code_is_left_to_python(codes: list[int]) -> None:
    leave("no such file")
    assert codes == []


PROGRAM = """
import atexit, sys, weakref
class Thing: pass
thing = Thing()
thing.end = weakref.finalize(thing, print, "finalised")
Thing.__del__ = lambda self: print("taken apart")
atexit.register(print, "registered")
from protocon.base.leave import leave
print("printed")
print("told", file=sys.stderr)
leave(3)
print("never")
"""


def test_nothing_that_was_printed_or_registered_is_lost_and_nothing_is_taken_apart() -> None:
    ended = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert ended.returncode == 3
    assert sorted(ended.stdout.split("\n")) == ["", "finalised", "printed", "registered"]
    assert ended.stderr == "told\n"


def test_a_program_that_runs_the_command_line_goes_on() -> None:
    program = "import sys; from protocon.__main__ import main\nsys.argv = ['mine.py', '--version']\n"
    program += "try:\n    main()\nexcept SystemExit:\n    print('goes on')"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.splitlines()[-1] == "goes on"


@pytest.mark.parametrize(("argument", "code"), [("--version", 0), ("--no-such-option", 2)])
def test_the_command_ends_with_its_own_code(argument: str, code: int) -> None:
    ended = subprocess.run([sys.executable, "-m", "protocon", argument], capture_output=True, text=True, check=False)
    assert ended.returncode == code
    assert ended.stdout + ended.stderr


def test_a_profile_of_the_command_is_still_written() -> None:
    command = [sys.executable, "-m", "cProfile", "-m", "protocon", "--version"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "function calls" in ended.stdout
