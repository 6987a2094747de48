"""`protocon split`."""

from pathlib import Path
from typing import Annotated

import typer

from protocon.base.say import say
from protocon.commands.console import emit
from protocon.commands.options import DATA, AsJson, ChosenData, Debug, takes
from protocon.errors import ProtoConError


@takes(DATA)
def split(
    output: Annotated[Path, typer.Argument(help="JSON file to write.")],
    chosen: ChosenData,
    as_json: AsJson = False,
    debug: Debug = False,  # noqa: ARG001
) -> None:
    """Draw which images are labelled and save it, for `train … data.split=FILE`."""
    from protocon.data.labels.split_file import save_split
    from protocon.runs.run_data import choose_split, load_data

    config = chosen.resolve().config()
    if output.exists():
        raise ProtoConError(f"{output} exists and is not overwritten; choose another name")
    drawn = choose_split(config, load_data(config).train)
    save_split(drawn, output)
    content = {"split": str(output), "labelled": len(drawn.labelled), "unlabelled": len(drawn.unlabelled)}
    emit(
        as_json,
        content,
        lambda console: say(console, f"{output}: {content['labelled']} labelled, {content['unlabelled']} unlabelled"),
    )
