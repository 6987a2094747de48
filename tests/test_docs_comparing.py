"""The tables of docs/comparing.md are those that its commands wrote: made again here from the cells."""

import csv

import pytest

from protocon.compare.comparison import CellRecord, Comparison
from protocon.compare.tables import cost_page, to_markdown
from tests.test_docs_examples import DOCS, ROOT


def recorded(name: str) -> Comparison:
    with (ROOT / "benchmarks" / "results" / f"{name}_cells.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    records = tuple(
        CellRecord(
            method=row["method"],
            labels=int(row["labels"]),
            seed=int(row["seed"]),
            accuracy=float(row["accuracy"]),
            seconds=float(row["seconds"]),
            memory=float(row["memory"]),
            run=row["run"],
        )
        for row in rows
    )
    return Comparison(
        data="digits",
        methods=tuple(dict.fromkeys(record.method for record in records)),
        labels=tuple(sorted({record.labels for record in records})),
        seeds=len({record.seed for record in records}),
        records=records,
    )


@pytest.mark.parametrize(("name", "methods"), [("compare_digits", 14), ("compare_digits_dual", 2)])
def test_tables_are_those_of_the_cells(name: str, methods: int) -> None:
    comparison = recorded(name)
    assert (len(comparison.methods), comparison.labels, comparison.seeds) == (methods, (2, 4, 8), 5)
    assert len(comparison.records) == methods * 3 * 5
    page = (DOCS / "comparing.md").read_text(encoding="utf-8")
    cost = {f"| {' | '.join(row)} |" for row in cost_page(comparison).rows}
    wanted = [line for line in to_markdown(comparison).splitlines() if line.startswith("| ")]
    shown = [line for line in wanted if line not in cost or methods == 14]  # of the second only what differs
    missing = [line for line in shown if line not in page and "seconds" not in line]
    assert not missing


def test_the_committed_tables_are_whole() -> None:
    for name in ("compare_digits", "compare_digits_dual"):
        table = (ROOT / "benchmarks" / "results" / f"{name}.csv").read_text(encoding="utf-8")
        assert table.count("\n") == 1 + len(recorded(name).methods) * 3
