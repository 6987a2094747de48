"""What commands print: one JSON object, or text for a person; and advice when they are interrupted."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import typer
from rich.console import Console

from protocon.base.say import say
from protocon.errors import RunStopped


def emit(as_json: bool, content: dict[str, Any], show: Callable[[Console], None]) -> None:
    """Either one JSON object, or what a person reads.

    Args:
        as_json: which of the two.
        content: for the object.
        show: prints what a person reads.
    """
    if as_json:
        text = json.dumps(content, ensure_ascii=False)
        try:
            text.encode(sys.stdout.encoding or "utf-8")
        except UnicodeEncodeError:  # a file whose name is not valid text, or a terminal that cannot show it
            text = json.dumps(content)
        sys.stdout.write(text + "\n")
    else:
        show(Console())


@contextmanager
def interruptible(console: Console, advice: str = "--resume auto continues from the last checkpoint") -> Iterator[None]:
    """Ctrl-C, or a signal to stop, ends a run with advice on how to continue it."""
    try:
        yield
    except RunStopped as stop:
        say(console, str(stop))
        raise typer.Exit(128 + stop.signal) from None  # as shells count: 143 for SIGTERM
    except KeyboardInterrupt:
        say(console, f"interrupted; {advice}")
        raise typer.Exit(130) from None
