"""A line for a person, on a terminal of any width."""

import textwrap

from rich.console import Console


def say(console: Console, text: str) -> None:
    """Print text as it is: no markup, no colours. On a terminal, long lines are broken between words.

    Neither are words broken, such as paths, nor lines that begin with a space, such as commands to be copied: the
    terminal breaks those, and they are copied whole. In a file or a pipe a line stays one line.

    Args:
        console: where to.
        text: one line or several.
    """
    lines = text.split("\n")
    if console.is_terminal:
        lines = [part for line in lines for part in _broken(line, console.width)]
    console.print("\n".join(lines), markup=False, highlight=False, soft_wrap=True)


def _broken(line: str, width: int) -> list[str]:
    if line.startswith(" ") or len(line) <= width:
        return [line]
    return textwrap.wrap(line, max(width, 1), break_long_words=False, break_on_hyphens=False)
