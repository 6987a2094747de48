"""The page of evidence, drawn from stored results: what counts against the paper first."""

from collections.abc import Sequence
from typing import Any

from protocon.claims.claims_page import cells_of, verdict_words
from protocon.claims.field import FIELDS
from protocon.claims.first_steps_part import FirstSteps, first_steps_section
from protocon.claims.ideas_table import IdeasTable, ideas_section
from protocon.claims.results import effects_of
from protocon.claims.scratch_tables import ScratchTable, tables_section
from protocon.claims.table import CLAIMS

_ORDER = ("not supported", "undecided", "supported")
_INTRODUCTION = """\
# The paper's claims, tested

<!-- Drawn by `make evidence` from benchmarks/results; do not edit. -->

`protocon claims` lists {count} claims of the paper, each with the place where it is made; `protocon claims run ID…`
tests one. All methods are compared from scratch beside them, and changes of ProtoCon are tried. This page is drawn from
the results in `benchmarks/results`, which hold every run's accuracy, the settings, the commit and the command. What
counts against the paper, and against ProtoCon, comes first.

**How to read it.** An effect is a mean over draws of the labels, paired where two sides share them, with its 95 % t
interval. It is *supported* if the whole interval lies where the claim says, *not supported* if none of it does, and
*undecided* otherwise. A claim is supported if all its effects are, and not supported as soon as one of them is not.
With three seeds t is 4.30, with five 2.78, so that small effects stay undecided. With so many effects, a few intervals
miss by chance alone.

**What it is worth.** The paper trains a WRN-28-2 on CIFAR for 2^20 steps; these runs are a few hundred steps of a
small network on small images. A claim that fails here may hold there. Our settings for small data (`auto`) were chosen
on digits, with ProtoCon as the method; distribution alignment is the published one in all methods. FlexMatch, which
the paper does not compare with, is ahead of ProtoCon on digits ([comparing methods](comparing.md)).
"""


def page(
    results: Sequence[dict[str, Any]],
    *,
    images: str,
    tables: Sequence[ScratchTable] = (),
    ideas: IdeasTable | None = None,
    steps: FirstSteps | None = None,
) -> str:
    """The page as Markdown.

    Args:
        results: as `results.load` gives them.
        images: where the figures are, as the page sees it.
        tables: all methods from scratch, by data.
        ideas: changes of ProtoCon that were tried.
        steps: the first steps of an exact recipe.
    """
    parts = [_INTRODUCTION.format(count=len(CLAIMS)), tables_section(tables), ideas_section(ideas)]
    parts += [first_steps_section(steps), "## The claims\n", _summary(results), _untested(results)]
    for verdict in _ORDER:
        chosen = [result for result in results if result["verdict"] == verdict]
        if chosen:
            parts.append(f"## Claims: {verdict}\n")
        parts += [_section(result, images) for result in chosen]
    return "\n".join(part for part in parts if part)


def _summary(results: Sequence[dict[str, Any]]) -> str:
    """Claims by verdict on each data."""
    fields = list(dict.fromkeys(result["data"] for result in results))
    found = {(result["claim"], result["data"]): result["verdict"] for result in results}
    lines = [f"| | claim | {' | '.join(fields)} |", "|---|---|" + "---|" * len(fields)]
    for number, claim in enumerate(CLAIMS.values(), 1):
        cells = [found.get((claim.id, field), "not run") for field in fields]
        lines.append(f"| {number} | `{claim.id}`: {claim.says} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _untested(results: Sequence[dict[str, Any]]) -> str:
    """Claims and data without any result."""
    tested, used = ({result[key] for result in results} for key in ("claim", "data"))
    lines = []
    if missing := [f"`{name}`" for name in CLAIMS if name not in tested]:
        lines.append(f"**Not run on any data yet:** {', '.join(missing)}.\n")
    for field in FIELDS.values():
        if field.name not in used:
            command = f"protocon claims run all --data {field.name}"
            lines.append(f"**No claim has been run on {field.name} yet** ({field.about}): `{command}`.\n")
    return "\n".join(lines)


def _section(result: dict[str, Any], images: str) -> str:
    claim = CLAIMS[result["claim"]]
    lines = [
        f"### {claim.says} ({result['data']})",
        "",
        f"Paper: {claim.place}. Test: {claim.test}",
        "",
        "| effect | mean | 95 % interval | claimed | seeds | verdict |",
        "|---|---|---|---|---|---|",
        *(f"| {' | '.join(cells_of(one))} |" for one in effects_of(result)),
        "",
        f"**{verdict_words(result['verdict']).capitalize()}.** {_how(result)}",
        "",
        f"![{claim.id} on {result['data']}]({images}/{claim.id}-{result['data']}.svg)",
        "",
    ]
    return "\n".join(lines)


def _how(result: dict[str, Any]) -> str:
    """Data, settings, code and command."""
    trained = f", {result['epochs']} epochs" if "epochs" in result else ""
    data = "" if not result["seeds"] else f"Data: {result['about']}{trained}. "
    code = f"version {result['version']}" + (f", commit {result['commit']}" if result["commit"] else "")
    return f"{data}Code: {code}. Command: `{result['command']}`"
