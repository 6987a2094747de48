"""The tables of docs/comparing.md are those that its commands wrote: made again here from the cells."""

import pytest

from protocon.compare.comparison import Comparison
from protocon.compare.stored_cells import comparison_of, read_cells
from protocon.compare.tables import cost_page, to_markdown
from tests.test_docs_examples import DOCS, ROOT


def recorded(name: str) -> Comparison:
    return comparison_of(read_cells(ROOT / "benchmarks" / "results" / f"{name}_cells.csv"), "digits")


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
