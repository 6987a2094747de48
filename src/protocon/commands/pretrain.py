"""`protocon pretrain`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from protocon.base.say import say
from protocon.commands.console import emit, interruptible
from protocon.commands.options import DATA, NETWORK, TRAINING, AsJson, ChosenData, Debug, takes
from protocon.commands.run_options import OUT, AcceptChanges, Name, Out, Resume, Verbose
from protocon.commands.train import resume_named, show_plan
from protocon.errors import ConfigError

if TYPE_CHECKING:
    from protocon.commands.data_argument import DataArgument

DEFAULT = "simclr"
"""The method where none is asked for."""


@takes(DATA, NETWORK, TRAINING, without=("--labels-per-class", "--labels-percent", "--frozen"))
def pretrain(
    chosen: ChosenData,
    out: Out = OUT,
    name: Name = None,
    resume: Resume = None,
    accept_changes: AcceptChanges = False,
    verbose: Verbose = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be done, with memory and time, and stop.")
    ] = False,
    as_json: AsJson = False,
    debug: Debug = False,  # noqa: ARG001
) -> None:
    """Train an encoder on images without labels, for `train --init`, `train --frozen --init` and `label`.

    Labels that are there are used only to watch: how often an image's nearest neighbours are of its class.
    """
    from protocon.base.distributed import rank
    from protocon.engine.run import fit

    console = Console(stderr=True)
    if resume not in (None, "auto"):
        given = [*chosen.given, *([f"--name {name}"] if name is not None else [])]
        resume_named(Path(str(resume)), given, chosen.arguments, accept_changes, console, as_json)
        return
    inputs = _with_method(chosen.resolve(needs_labels=False))
    if inputs.said is not None and rank() == 0:
        say(console, inputs.said)
    config = inputs.config()
    if dry_run:
        show_plan(config, as_json)
        return
    with interruptible(console):
        result = fit(
            config,
            out=out,
            name=name,
            resume=resume == "auto",
            accept_changes=accept_changes,
            console=console,
            verbose=verbose,
        )
        if rank() == 0:
            emit(as_json, result, lambda console: _show(console, result))


def _with_method(inputs: "DataArgument") -> "DataArgument":
    """The settings that the method is best started with: those of its recipe, unless another one is named."""
    from dataclasses import replace

    from protocon.methods import METHODS
    from protocon.settings.recipe import read_recipe

    asked = inputs.settings.get("method_name")
    if asked is None and inputs.recipe is not None:
        asked = read_recipe(inputs.recipe).get("method_name")
    method = str(asked or DEFAULT)
    if method not in METHODS or METHODS[method].uses_labels:
        without = ", ".join(name for name, known in METHODS.items() if not known.uses_labels)
        raise ConfigError(
            f"pretrain learns without labels, by one of these methods: {without}; {method!r} came. "
            "protocon train takes the other ones"
        )
    settings = {**inputs.settings, "method_name": method}
    return replace(inputs, settings=settings, recipe=inputs.recipe or f"pretrain-{method}")


def _show(console: Console, result: dict[str, Any]) -> None:
    for line in result_lines(result):
        say(console, line)


def result_lines(result: dict[str, Any]) -> list[str]:
    """What came out, and what to do with it."""
    run = result["run"]
    lines = [
        f"{result['method']} on {result['unlabelled']:,} images, {result['epochs']} epochs; the encoder is in {run}"
    ]
    if (accuracy := result.get("knn_accuracy")) is not None:
        lines.append(f"nearest neighbours are of the right class for {100 * accuracy:.1f} % (k = 20)")
    if (spread := result.get("feature_spread")) is not None:
        lines.append(f"spread of the features: {spread:.2f} (0: all images look the same; 1: they point everywhere)")
    lines.append(f"Train a classifier on it: protocon train DATA --init {run}, or quickly, with --frozen added")
    return lines
