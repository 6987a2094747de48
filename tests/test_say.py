"""Lines for a person break between words on a terminal, and nowhere else."""

import io

import pytest
from rich.console import Console

from protocon.base.say import say

PATH = "runs/a-folder-with-a-name-that-is-longer-than-the-terminal/report.html"


def said(text: str, *, terminal: bool, width: int = 40) -> str:
    file = io.StringIO()
    say(Console(file=file, width=width, force_terminal=terminal, color_system=None), text)
    return file.getvalue()


def test_words_are_not_broken_and_paths_are_left_whole() -> None:
    text = f"Each of your labels was held out once, and predicted [from] the others. Open {PATH}. Then look."
    lines = said(text, terminal=True).splitlines()
    assert " ".join(lines) == text
    assert [line for line in lines if len(line) > 40] == [f"{PATH}."]
    assert len(lines) == 4


@pytest.mark.parametrize("text", [f"  protocon train --resume {PATH} --accept-changes", "short: [bold]"])
def test_commands_to_be_copied_stay_on_one_line(text: str) -> None:
    assert said(text, terminal=True) == text + "\n"


def test_a_log_has_one_line_for_one_message() -> None:
    text = f"what was found is longer than the width\n{PATH} " * 2
    assert said(text, terminal=False) == text + "\n"
