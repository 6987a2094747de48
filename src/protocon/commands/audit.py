"""`protocon audit`."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from protocon.base.say import say
from protocon.commands.console import emit
from protocon.commands.options import AsJson, Debug
from protocon.errors import ConfigError
from protocon.runs import layout

if TYPE_CHECKING:
    from protocon.report.audit_estimate import Drawn


def audit(
    run: Annotated[Path, typer.Argument(help="Folder of a finished run.")],
    count: Annotated[int, typer.Option("--images", "-n", min=5, help="How many images to draw.")] = 30,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Draws other images.")] = 0,
    answers: Annotated[
        Path | None, typer.Option("--answers", help="The filled-in table (CSV or Excel): file, label.")
    ] = None,
    ask: Annotated[bool, typer.Option("--ask", help="Ask for the answers here, one by one.")] = False,
    as_json: AsJson = False,
    debug: Debug = False,  # noqa: ARG001
) -> None:
    """Estimate fairly how many labels are right: draw images at random, take your answers, give an interval.

    Without --answers or --ask it writes audit.csv, to be filled in, and audit.html, a page of the images.
    """
    from protocon.report.audit_estimate import (
        audit_lines,
        draw_audit,
        judge_audit,
        keep_audit,
        known_answers,
        reuse_line,
    )
    from protocon.report.record import read_record

    if ask and answers is not None:
        raise ConfigError("--ask and --answers both give the answers; leave one out")
    drawn = draw_audit(run, count=count, seed=seed)
    if answers is None and not ask:
        _hand_out(run, drawn, seed=seed, count=count, as_json=as_json)
        return
    given = _asked(drawn) if answers is None else _read(answers, drawn)
    content = judge_audit(run, drawn, known_answers(drawn.names, drawn.table.class_names, given), seed=seed)
    keep_audit(run, content)
    _draw_report(run)

    def show(console: Console) -> None:
        lines = audit_lines(content)
        if read_record(run).data.get("data") == "folder":  # elsewhere labels are in no table
            lines.append(reuse_line(answers or run / layout.AUDIT, [row["answer"] for row in content["answers"]]))
        for line in lines:
            say(console, line)

    emit(as_json, content, show)


def _hand_out(run: Path, drawn: "Drawn", *, seed: int, count: int, as_json: bool) -> None:
    """Write the table to fill in, and the page of the images."""
    from protocon.base.atomic import write_bytes
    from protocon.commands.report import run_images
    from protocon.report.audit_estimate import write_sheet
    from protocon.report.audit_page import build_audit_page
    from protocon.report.record import read_record

    record = read_record(run)
    write_sheet(run / layout.AUDIT_SHEET, drawn)
    write_bytes(run / layout.AUDIT_PAGE, build_audit_page(record, drawn, run_images).encode())
    command = f"protocon audit {run} --answers {run / layout.AUDIT_SHEET}"
    command += f" --seed {seed}" if seed else ""
    command += f" --images {count}" if count != 30 else ""

    def show(console: Console) -> None:
        for line in (
            f"{len(drawn.names)} images are drawn at random. To see them, open {run / layout.AUDIT_PAGE}",
            f"Write the class of each into {run / layout.AUDIT_SHEET}",
            f"Then:\n  {command}",
        ):
            say(console, line)

    content: dict[str, Any] = {
        "run": str(run),
        "sheet": str(run / layout.AUDIT_SHEET),
        "page": str(run / layout.AUDIT_PAGE),
    }
    emit(as_json, content | {"images": list(drawn.names), "next": command}, show)


def _read(file: Path, drawn: "Drawn") -> dict[str, str]:
    """Answers from a table, by the names of the drawn images."""
    from protocon.data.labels.file_finder import FileFinder
    from protocon.data.labels.label_file import read_label_table

    finder = FileFinder(drawn.names)
    found: dict[str, str] = {}
    for row in read_label_table(file, names_image=finder.names_image).rows:
        place = finder.find(row.file).place
        if place is not None and row.label:
            found[drawn.names[place]] = row.label
    return found


def _asked(drawn: "Drawn") -> dict[str, str]:
    """Answers from the terminal: the name of a class, or its number in the list. A misspelt one is asked for again."""
    from protocon.report.audit_estimate import slip

    names = drawn.table.class_names
    console = Console(stderr=True)
    console.print("  ".join(f"{number}: {name}" for number, name in enumerate(names, start=1)), markup=False)
    found: dict[str, str] = {}
    for number, name in enumerate(drawn.names, start=1):
        console.print(f"{number}/{len(drawn.names)}  {name}  class? ", end="", markup=False, highlight=False)
        said = sys.stdin.readline().strip()
        while doubt := slip(name, said, names):
            console.print(f"{doubt} ", end="", markup=False, highlight=False)
            said = sys.stdin.readline().strip()
        chosen = int(said) - 1 if said.isdecimal() and said not in names else -1
        found[name] = names[chosen] if 0 <= chosen < len(names) else said
    return found


def _draw_report(run: Path) -> None:
    """The run's page with the audit in it; a page that cannot be drawn costs nothing but a word."""
    from protocon.base.atomic import write_bytes
    from protocon.commands.report import run_images
    from protocon.errors import ProtoConError
    from protocon.report.model_card import build_card
    from protocon.report.page import build_page
    from protocon.report.record import read_record

    try:
        write_bytes(run / layout.CARD, build_card(read_record(run)).encode("utf-8", "backslashreplace"))
        write_bytes(run / "report.html", build_page([run], images=run_images).encode())
    except (ProtoConError, OSError) as error:
        Console(stderr=True).print(f"warning: report.html could not be drawn again: {error}", markup=False)
