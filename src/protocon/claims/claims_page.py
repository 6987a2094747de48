"""A tested claim as text: on the terminal and in Markdown."""

from typing import Any

from rich.console import Console
from rich.table import Table

from protocon.claims.claim import Effect
from protocon.claims.results import effects_of
from protocon.claims.table import CLAIMS

_WORDS = {"supported": "supported", "not supported": "not supported", "undecided": "undecided on this data"}


def verdict_words(verdict: str) -> str:
    """The verdict as it is printed."""
    return _WORDS[verdict]


def show_result(result: dict[str, Any], console: Console) -> None:
    """Print a claim, its effects and the verdict."""
    claim = CLAIMS[result["claim"]]
    console.print(f"{claim.says} ({claim.place})", markup=False, highlight=False)
    table = Table()
    for heading in ("effect", "mean", "95 % interval", "claimed", "seeds", "verdict"):
        table.add_column(heading, overflow="fold")
    for one in effects_of(result):
        table.add_row(*cells_of(one))
    console.print(table)
    words = verdict_words(result["verdict"])
    console.print(f"{claim.id} on {result['data']}: {words}", markup=False, highlight=False)


def cells_of(one: Effect) -> tuple[str, ...]:
    """An effect as the cells of a table."""
    mean = "–" if one.mean is None else f"{number(one.mean)} {one.unit}"
    interval = "–" if one.low is None or one.high is None else f"[{number(one.low)}, {number(one.high)}]"
    if one.n == 0:
        interval = "no chance in it"
    claimed = f"within ±{one.claimed:g}" if one.within else f"> {one.claimed:.6g}"
    return one.what, mean, interval, claimed, str(one.n or "–"), verdict_words(one.verdict)


def number(value: float) -> str:
    """Two decimals, with a true minus."""
    text = f"{value:.2f}"
    return "0.00" if text == "-0.00" else text.replace("-", "−")
