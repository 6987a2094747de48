"""`protocon pick`."""

import shlex
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from protocon.base.say import say
from protocon.commands.console import emit, interruptible
from protocon.commands.options import DATA, NETWORK, AsJson, ChosenData, Debug, takes
from protocon.errors import ConfigError

_SHOWN = 10
_SHOWN_WARNINGS = 5
_NAME = next(option for option in DATA.options if option.setting == "data.name")
_FROZEN = next(option for option in NETWORK.options if option.setting == "network.frozen")
_UNUSED = ("--data", "--labels-per-class", "--labels-percent", "--recipe", "--frozen", "--from-scratch")


@takes(DATA, NETWORK, without=_UNUSED)
def pick(
    chosen: ChosenData,
    count: Annotated[int, typer.Option("--count", "-n", min=1, help="How many images to pick.")] = 40,
    out: Annotated[Path, typer.Option("--out", help="Folder for picks.csv and picks.html.")] = Path("picks"),
    as_json: AsJson = False,
    debug: Debug = False,  # noqa: ARG001
) -> None:
    """Pick the images of a folder that are most worth labelling, with or without labels to start from.

    Writes a table to fill in, which `train --labels` reads, and a page of pictures.
    """
    # A name, so that the folder is not searched for labels that it need not have.
    # Frozen from the start: which views are cached depends on the method, and the method on that.
    inputs = replace(chosen, options={_NAME: "folder", _FROZEN: True, **chosen.options}).resolve()
    config = inputs.config()
    if config.data.root is None:
        raise ConfigError("no folder is given; expected one of images: protocon pick photos/ -n 40")
    from protocon.picking.pick_files import PAGE, TABLE, pick_files

    console = Console(stderr=True)
    with interruptible(console, "features that are computed are kept; the same command continues"):
        found = pick_files(config, count, out=out, seed=config.run.seed, console=console)
    for line in found.warnings[:_SHOWN_WARNINGS]:
        say(console, f"warning: {line}")
    if len(found.warnings) > _SHOWN_WARNINGS:
        say(console, f"warning: and {len(found.warnings) - _SHOWN_WARNINGS:,} more")
    content: dict[str, Any] = {
        "table": str(out / TABLE),
        "page": str(out / PAGE),
        "next": shlex.join(["protocon", "train", str(config.data.root), "--labels", str(out / TABLE)]),
        "images": found.images,
        "labelled": found.labelled,
        "picks": [
            {"rank": p.rank, "file": p.file, "reason": p.reason, "stands_for": p.stands_for} for p in found.picks
        ],
    }
    emit(as_json, content, lambda screen: _show(screen, content))


def _show(screen: Console, content: dict[str, Any]) -> None:
    picks = content["picks"]
    for row in picks[:_SHOWN]:
        say(screen, f"{row['rank']:>3}  {row['file']}  ({row['reason']})")
    if len(picks) > _SHOWN:
        say(screen, f"     and {len(picks) - _SHOWN:,} more")
    labelled = f", {content['labelled']:,} of them labelled already" if content["labelled"] else ""
    say(screen, f"{len(picks)} of {content['images']:,} images{labelled}: look at {content['page']}")
    say(screen, f"fill in the labels in {content['table']}; then:\n  {content['next']}")
