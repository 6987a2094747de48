"""`protocon data`: what there is to learn from, looked at before training."""

import shlex
import sys
from typing import Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from protocon.base.say import say
from protocon.commands.console import emit, interruptible
from protocon.commands.options import DATA, NETWORK, TRAINING, AsJson, ChosenData, Debug, takes
from protocon.commands.run_options import Verbose
from protocon.commands.usage import Command
from protocon.data.files.names import shown
from protocon.errors import ProtoConError

_SHOWN = 20
_SHOWN_WARNINGS = 50

data = typer.Typer(no_args_is_help=True, help="Look at data before training on it.")


@data.command(cls=Command)
@takes(DATA, NETWORK, TRAINING)
def check(chosen: ChosenData, verbose: Verbose = False, as_json: AsJson = False, debug: Debug = False) -> None:  # noqa: ARG001
    """Account for every file: used, or skipped and why; duplicates, odd labels, and what training would do.

    Takes the options of `train`. Exit code 0 if training is possible, 1 if not.
    """
    from protocon.engine.planning.data_check import check_data
    from protocon.engine.setup.announce import bar

    console = Console(stderr=True)
    try:
        inputs = chosen.resolve()
        config = inputs.config()
    except ProtoConError as error:
        if not as_json:
            raise
        emit(as_json, {"ok": False, "errors": [str(error)]}, lambda _: None)
        raise typer.Exit(1) from error
    with interruptible(console, "nothing was changed"), bar(console) as progress:
        content = check_data(config, progress=progress)
    content["recognised"] = inputs.said
    content["notes"] = [*content.get("notes", []), *inputs.lines()[1 if inputs.said else 0 :]]
    emit(as_json, content, lambda screen: show(content, screen, verbose=verbose))
    if not content["ok"]:
        raise typer.Exit(1)


def show(content: dict[str, Any], screen: Console, *, verbose: bool) -> None:
    """The findings as tables, the verdict last.

    Args:
        content: what was found.
        screen: where to show it.
        verbose: show every setting of the training too.
    """
    if content["recognised"]:
        say(screen, content["recognised"])
    if "files" in content:
        say(screen, "{found:,} files: {used:,} used, {skipped:,} skipped".format(**content["files"]))
    _table(screen, "Skipped files", ("file", "why"), [(s["file"], s["reason"]) for s in content.get("skipped", [])])
    _show_classes(content.get("classes", []), screen)
    if "counts" in content:
        counts = "{labelled:,} labelled, {unlabelled:,} unlabelled"
        counts += ", {test:,} test images" if content["counts"]["test"] else ""
        say(screen, counts.format(**content["counts"]))
    _show_images(content.get("images") or {}, screen)
    rows = [(d["kind"], "\v".join(_copy(c) for c in d["copies"][:_SHOWN])) for d in content.get("duplicates", [])]
    _table(screen, "Duplicates", ("how", "files"), rows)
    if "training" in content and not verbose:
        memory = float(content["training"]["memory"]["total"].split()[0])
        say(screen, f"training takes about {memory:,.0f} MiB of memory; --verbose lists its settings")
    elif "training" in content:
        training = content["training"]
        sizes = {key: training["sizes"][key] for key in ("epochs", "steps_per_epoch", "steps", "parameters")}
        rows = [*training["chosen"].items(), *sizes.items(), ("memory (estimate)", training["memory"]["total"])]
        rows += [("time", training["time"])] if "time" in training else []
        _table(screen, "What training would do", ("setting", "value, and why"), rows, shown_rows=len(rows))
    for line in content.get("notes", []):
        say(screen, f"note: {line}")
    warnings = content.get("warnings", [])
    for line in warnings[:_SHOWN_WARNINGS]:
        say(screen, f"warning: {line}")
    if len(warnings) > _SHOWN_WARNINGS:
        say(screen, f"warning: and {len(warnings) - _SHOWN_WARNINGS:,} more (--json lists all)")
    for line in content["errors"]:
        say(screen, f"error: {line}")
    if not content["ok"]:
        say(screen, "training is not possible")
        return
    command = _train_command(sys.argv)
    say(screen, f"training is possible:\n  {command}" if command else "training is possible")


def _train_command(argv: list[str]) -> str:
    """The command that trains with the options that were checked; empty where this is no command line."""
    if argv[1:3] != ["data", "check"]:
        return ""
    return shlex.join(["protocon", "train", *(word for word in argv[3:] if word not in ("--verbose", "--debug"))])


def _show_classes(classes: list[dict[str, Any]], screen: Console) -> None:
    """Labels by class; columns that would say the same twice, or only zeros, are left out."""
    columns = [("labelled", "labelled")]
    if any(row["known"] != row["labelled"] for row in classes):
        columns.append(("known", "labels known"))
    if any(row["test"] for row in classes):
        columns.append(("test", "test images"))
    rows = [(row["name"], *(row[key] for key, _ in columns)) for row in classes]
    _table(screen, "Classes", ("class", *(heading for _, heading in columns)), rows)


def _copy(copy: dict[str, Any]) -> str:
    return f"{shown(copy['file'])} ({copy['part']}{', ' + copy['label'] if copy['label'] else ''})"


def _show_images(images: dict[str, Any], screen: Console) -> None:
    if not images:
        return
    width, height = images["sizes"]["width"], images["sizes"]["height"]
    if width["least"] == width["most"] and height["least"] == height["most"]:
        say(screen, f"all images are {width['least']:,} × {height['least']:,} pixels")
    else:
        rows = [(what, *values.values()) for what, values in images["sizes"].items()]
        _table(screen, "Image sizes in pixels", ("", *width), rows)
    counts = dict(images["formats"])
    if set(images["modes"]) != {"RGB"}:  # colours in eight bits, as nearly all photographs
        counts |= {f"mode {mode}": count for mode, count in images["modes"].items()}
    screen.print(", ".join(f"{count:,} {kind}" for kind, count in counts.items()), markup=False, highlight=False)


def _table(
    screen: Console, title: str, headings: tuple[str, ...], rows: list[tuple[Any, ...]], shown_rows: int = _SHOWN
) -> None:
    if not rows:
        return
    table = Table(title=title, title_justify="left")
    for heading in headings:
        table.add_column(heading, overflow="fold")
    for row in rows[:shown_rows]:
        table.add_row(*(escape("\n".join(map(shown, str(value).split("\v")))) for value in row))
    screen.print(table)
    if len(rows) > shown_rows:
        screen.print(f"and {len(rows) - shown_rows:,} more (--json lists all)", highlight=False)
