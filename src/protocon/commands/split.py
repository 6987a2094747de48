"""`protocon split`."""

from pathlib import Path
from typing import Annotated

import typer

from protocon.commands.console import emit
from protocon.commands.data_argument import find_input
from protocon.commands.options import AsJson, Data, Debug, Labels, Percent, PerClass, Root, Seed, config_from
from protocon.data.labels.split_file import save_split
from protocon.errors import ProtoConError


def split(
    output: Annotated[Path, typer.Argument(help="JSON file to write.")],
    place: Annotated[str | None, typer.Argument(help="Folder (or zip, npz) of one's own data.")] = None,
    data: Data = None,
    root: Root = None,
    labels: Labels = None,
    labels_per_class: PerClass = None,
    labels_percent: Percent = None,
    seed: Seed = None,
    as_json: AsJson = False,
    debug: Debug = False,  # noqa: ARG001
) -> None:
    """Draw which images are labelled and save it, for `train … data.split=FILE`."""
    from protocon.engine.setup.session import choose_split, load_data

    source = find_input([place] if place else [], data=data, root=root, labels=labels)
    config = config_from(
        data=source.name,
        root=source.root,
        labels=labels,
        labels_per_class=labels_per_class,
        labels_percent=labels_percent,
        method=None,
        seed=seed,
        recipe=None,
        overrides=source.overrides,
    )
    if output.exists():
        raise ProtoConError(f"{output} exists and is not overwritten; choose another name")
    drawn = choose_split(config, load_data(config).train)
    save_split(drawn, output)
    content = {"split": str(output), "labelled": len(drawn.labelled), "unlabelled": len(drawn.unlabelled)}
    emit(
        as_json,
        content,
        lambda console: console.print(
            f"{output}: {content['labelled']} labelled, {content['unlabelled']} unlabelled", highlight=False
        ),
    )
