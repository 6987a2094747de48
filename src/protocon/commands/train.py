"""`protocon train`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from protocon.base.say import say
from protocon.commands.console import emit, interruptible
from protocon.commands.options import DATA, NETWORK, TRAINING, AsJson, ChosenData, Debug, takes
from protocon.commands.run_options import OUT, AcceptChanges, Name, Out, Resume, Verbose
from protocon.errors import ProtoConError

if TYPE_CHECKING:
    from protocon.settings.config import RunConfig


@takes(DATA, NETWORK, TRAINING)
def train(
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
    """Train a classifier from a few labels and many unlabelled images."""
    from protocon.base.distributed import rank
    from protocon.engine.run import fit

    console = Console(stderr=True)
    if resume not in (None, "auto"):
        given = [*chosen.given, *([f"--name {name}"] if name is not None else [])]
        resume_named(Path(str(resume)), given, chosen.arguments, accept_changes, console, as_json)
        return
    inputs = chosen.resolve()
    for line in inputs.lines() if rank() == 0 else ():
        say(console, line)
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
        _emit_result(as_json, result)


def resume_named(
    run: Path, given: list[str], overrides: tuple[str, ...], accept_changes: bool, console: Console, as_json: bool
) -> None:
    """Continue a run, which has settings of its own.

    Args:
        run: its folder.
        given: options that were typed beside it.
        overrides: settings that were typed beside it, as key=value.
        accept_changes: change these settings.
        console: for progress.
        as_json: print the result as JSON.
    """
    from protocon.engine.run import resume_run
    from protocon.runs.run_folder import RunFolder

    if given or (overrides and not accept_changes):
        raise ProtoConError(
            f"--resume {run} continues with that run's own settings; leave out {', '.join([*given, *overrides])}, or "
            "add --accept-changes to change some as key=value, or leave out --resume to start a new run"
        )
    with interruptible(console):
        result = resume_run(RunFolder(run), console, overrides=overrides, accept_changes=accept_changes)
        _emit_result(as_json, result)


def _emit_result(as_json: bool, result: dict[str, Any]) -> None:
    from protocon.base.distributed import rank

    if rank() == 0:
        emit(as_json, result, lambda console: _show_result(console, result))


def _show_result(console: Console, result: dict[str, Any]) -> None:
    from protocon.report.outcome import outcome_lines

    for line in outcome_lines(result):
        say(console, line)


def show_plan(config: "RunConfig", as_json: bool) -> None:
    """Print what a run would do, and how long it would take.

    Args:
        config: its settings.
        as_json: print it as JSON.
    """
    from protocon.engine.planning.preview import describe_plan

    plan = describe_plan(config)

    def show(console: Console) -> None:
        console.print(plan["config_yaml"].rstrip(), highlight=False, markup=False)
        for title in ("chosen", "sizes", "memory"):
            table = Table(title=title, title_justify="left", show_header=False)
            for key, value in plan[title].items():
                table.add_row(key, str(value))
            console.print(table)
        console.print(f"training time: {plan['time']}", highlight=False, markup=False)

    emit(as_json, {key: value for key, value in plan.items() if key != "config_yaml"}, show)
