"""The tables from scratch, the ideas and the first steps say what their cells say."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from protocon.claims.first_steps_part import FirstSteps, first_steps_section
from protocon.claims.ideas_table import IdeasTable, ideas_section
from protocon.claims.scratch_tables import AUTO, ScratchTable, tables_section
from protocon.compare.comparison import CellRecord, Comparison
from protocon.compare.stored_cells import comparison_of, read_cells
from protocon.errors import RunError

Values = Mapping[str, tuple[float, ...]]
"""Accuracies in percent by method, one for each seed."""


def cells(values: Values, labels: int = 4) -> list[CellRecord]:
    return [
        CellRecord(method, labels, seed, accuracy / 100, seconds=1.0, memory=None, run=None)
        for method, row in values.items()
        for seed, accuracy in enumerate(row)
    ]


def section(values: Values) -> str:
    return tables_section([ScratchTable(comparison_of(cells(values), "toys", seeds=3), "Toys", "make toys")])


def test_every_method_that_is_ahead_is_named_and_by_how_much() -> None:
    text = section({AUTO: (80, 82, 84), "flexmatch": (81, 84, 87), "fixmatch": (70, 71, 72), "comatch": (80, 82, 84)})
    assert "the highest mean of all in 0 of 1 cells" in text
    line = next(line for line in text.splitlines() if line.startswith("- toys"))
    assert line == "- toys, 4 per class (3 draws): `flexmatch` by +2.00 [−0.48, +4.48]"
    assert "| `flexmatch` | **84.0 ± 3.0** |" in text
    assert text.index("`flexmatch` |") < text.index(f"`{AUTO}` |") < text.index("`fixmatch` |")


def test_a_method_with_the_same_alignment_stands_for_the_one_without() -> None:
    rival: dict[str, tuple[float, ...]] = {AUTO: (80, 82, 84), "fixmatch-da": (90, 90, 90), "protocon": (90, 90, 90)}
    assert "in 0 of 1 cells" in section({k: v for k, v in rival.items() if k != "protocon"})
    fair = section(rival | {"fixmatch-da+alignment=dual": (79, 81, 83)})
    assert "in 1 of 1 cells" in fair
    assert "- toys, 4 per class (3 draws): none" in fair


def test_cells_that_are_missing_are_told() -> None:
    text = section({AUTO: (80, 82, 84), "mpl": (60,)})
    assert "| `mpl` | 60.0 (n = 1) |" in text
    assert tables_section([]) == ""
    assert "0 of 0 cells" in section({"mpl": (60, 60, 60)})


def ideas(values: Values, more: Values) -> str:
    found = comparison_of([*cells(values), *cells(more, labels=2)], "toys")
    return ideas_section(IdeasTable(found, "Toys", "make toys"))


def test_an_idea_wins_only_if_its_interval_lies_above_zero_in_every_column() -> None:
    idea = f"{AUTO}+confidence=relative"
    base: dict[str, tuple[float, ...]] = {AUTO: (80.0, 82.0, 84.0)}
    text = ideas(base | {idea: (82.0, 84.1, 86.0)}, base | {idea: (82.0, 84.1, 86.0)})
    assert f"Clearly better, in every column: `{idea}`." in text
    text = ideas(base | {idea: (82.0, 84.1, 86.0)}, base | {idea: (79.0, 84.1, 86.0)})
    assert "None is clearly better in every column" in text
    assert "| confidence divided by its ceiling" in text
    assert "+2.03 [+1.89, +2.18]" in text
    assert ideas_section(None) == ""


def test_another_method_that_is_better_is_no_idea_for_protocon() -> None:
    base = {AUTO: (80.0, 82.0, 84.0), "flexmatch": (90.0, 92.0, 94.1)}
    text = ideas(base, base)
    assert "0 changes of ProtoCon" in text
    assert "None is clearly better" in text


DIGEST: dict[str, Any] = {
    **{"recipe": "table1/cifar10-40/protocon", "steps": 336, "epochs": 3, "total_steps": 1_048_576, "seconds": 3600},
    **{
        "numbers": 60,
        "all_finite": True,
        "warnings": [],
        "commit": "abc",
        "command": "python -m benchmarks.first_steps",
    },
}
ROWS = [{"epoch": 0, "step": 112, "loss_x": 2.3, "clusters_in_use": 200}, {"epoch": 1, "step": 224, "loss_x": 1.0}]


@pytest.mark.parametrize("finite", [True, False])
def test_the_first_steps_are_told_epoch_by_epoch(finite: bool) -> None:
    text = first_steps_section(FirstSteps(DIGEST | {"all_finite": finite}, ROWS, "files"))
    assert ("**Not all are finite**" in text) is not finite
    assert "0.03 % of the way" in text
    assert "| 1 | 112 | 2.300 | 200 |" in text
    assert "| 2 | 224 | 1.000 | – |" in text
    assert first_steps_section(None) == ""


def test_stored_cells_are_read_and_others_refused(tmp_path: Path) -> None:
    file = tmp_path / "cells.csv"
    file.write_text("method,labels,seed,accuracy,seconds\nfixmatch,4,0,0.5,2\nfixmatch,4,1,,\n")
    (record,) = read_cells(file, suffix="+alignment=dual")
    assert (record.method, record.accuracy, record.macro_accuracy) == ("fixmatch+alignment=dual", 0.5, None)
    assert isinstance(comparison_of([record], "toys"), Comparison)
    file.write_text("a,b\n1,2\n")
    with pytest.raises(RunError, match=r"not the cells\.csv"):
        read_cells(file)
