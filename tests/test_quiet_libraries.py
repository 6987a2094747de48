"""A user's terminal has no warnings of other libraries; a developer's has."""

import sys
import warnings

import pytest

from protocon.__main__ import silence_libraries


def heard(arguments: list[str]) -> int:
    """How many warnings of a library come through."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.resetwarnings()
        silence_libraries(arguments)
        warnings.warn("this will change in a later version", FutureWarning, stacklevel=1)
        warnings.warn("this is slow", UserWarning, stacklevel=1)
    return len(caught)


def test_commands_are_silent_unless_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONWARNINGS", raising=False)
    monkeypatch.setattr(sys, "warnoptions", [])
    assert heard(["train", "photos"]) == 0
    assert heard(["train", "photos", "--debug"]) == 2
    monkeypatch.setenv("PYTHONWARNINGS", "default")
    assert heard(["train", "photos"]) == 2
    monkeypatch.delenv("PYTHONWARNINGS")
    monkeypatch.setattr(sys, "warnoptions", ["default"])
    assert heard(["train", "photos"]) == 2
