"""`protocon train`."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from protocon.commands.console import emit, interruptible
from protocon.commands.data_argument import find_input
from protocon.commands.options import (
    AsJson,
    Compile,
    Data,
    Debug,
    EncoderName,
    Epochs,
    Frozen,
    ImageSize,
    Labels,
    Overrides,
    Percent,
    PerClass,
    Precision,
    Recipe,
    Root,
    Seed,
    TimeBudget,
    Weights,
    config_from,
)
from protocon.errors import ProtoConError
from protocon.settings.config import RunConfig


def train(
    overrides: Overrides = None,
    data: Data = None,
    root: Root = None,
    labels: Labels = None,
    labels_per_class: PerClass = None,
    labels_percent: Percent = None,
    method: Annotated[str | None, typer.Option("--method", help="protocon, or a baseline.")] = None,
    seed: Seed = None,
    recipe: Recipe = None,
    out: Annotated[Path, typer.Option("--out", help="Folder that holds run folders.")] = Path("runs"),
    encoder: EncoderName = None,
    weights: Weights = None,
    frozen: Frozen = None,
    image_size: ImageSize = None,
    epochs: Epochs = None,
    time_budget: TimeBudget = None,
    compile_network: Compile = None,
    precision: Precision = None,
    init: Annotated[
        Path | None, typer.Option("--init", help="Start from the encoder of a run folder or of a weights file.")
    ] = None,
    name: Annotated[str | None, typer.Option("--name", help="Name of the run folder.")] = None,
    resume: Annotated[
        str | None,
        typer.Option("--resume", help="auto: go on with the newest run of this name; or a run folder."),
    ] = None,
    accept_changes: Annotated[
        bool,
        typer.Option("--accept-changes", help="Resume although settings have changed, such as optim.epochs."),
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be done, and stop.")] = False,
    as_json: AsJson = False,
    debug: Debug = False,  # noqa: ARG001
) -> None:
    """Train a classifier from a few labels and many unlabelled images."""
    from protocon.base.distributed import rank
    from protocon.engine.run import fit, resume_run
    from protocon.runs.run_folder import RunFolder

    console = Console(stderr=True)
    if resume not in (None, "auto"):
        given = (data, root, labels, labels_per_class, labels_percent, method, seed, recipe, init, name)
        also = (encoder, weights, frozen, image_size, epochs, time_budget, compile_network, precision)
        if any(value is not None for value in (*given, *also)) or (overrides and not accept_changes):
            raise ProtoConError(
                f"--resume {resume} goes on with that run's own settings; leave all others out, or add "
                "--accept-changes to change some as key=value, or leave --resume out to start a new run"
            )
        folder = RunFolder(Path(str(resume)))
        with interruptible(console):
            result = resume_run(folder, console, overrides=overrides or (), accept_changes=accept_changes)
            _emit_result(as_json, result)
        return
    source = find_input(overrides, data=data, root=root, labels=labels)
    if source.said is not None and rank() == 0:
        console.print(source.said, markup=False, highlight=False, soft_wrap=True)
    config = config_from(
        data=source.name,
        root=source.root,
        labels=labels,
        labels_per_class=labels_per_class,
        labels_percent=labels_percent,
        method=method,
        seed=seed,
        recipe=recipe,
        overrides=source.overrides,
        encoder=encoder,
        weights=weights,
        frozen=frozen,
        image_size=image_size,
        epochs=epochs,
        time_budget=time_budget,
        compile_network=compile_network,
        precision=precision,
    )
    if init is not None:
        if config.network.weights is not None:
            raise ProtoConError(
                f"--init {init} and --weights {config.network.weights} both say what the encoder starts from; give one"
            )
        weights = init / "model.safetensors" if init.is_dir() else init
        network = config.network.model_copy(update={"weights": weights})
        config = config.model_copy(update={"network": network})
    if dry_run:
        _dry_run(config, as_json)
        return
    with interruptible(console):
        result = fit(
            config, out=out, name=name, resume=resume == "auto", accept_changes=accept_changes, console=console
        )
        _emit_result(as_json, result)


def _emit_result(as_json: bool, result: dict[str, Any]) -> None:
    from protocon.base.distributed import rank

    if rank() == 0:
        emit(as_json, result, lambda console: _show_result(console, result))


def _show_result(console: Console, result: dict[str, Any]) -> None:
    from protocon.report.outcome import outcome_lines

    for line in outcome_lines(result):
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def _dry_run(config: RunConfig, as_json: bool) -> None:
    from protocon.engine.setup.preview import describe_plan

    plan = describe_plan(config)

    def show(console: Console) -> None:
        console.print(plan["config_yaml"].rstrip(), highlight=False, markup=False)
        for title in ("chosen", "sizes", "memory"):
            table = Table(title=title, title_justify="left", show_header=False)
            for key, value in plan[title].items():
                table.add_row(key, str(value))
            console.print(table)

    emit(as_json, {key: value for key, value in plan.items() if key != "config_yaml"}, show)
