"""The suite's tables in the docs are what its stored cells say."""

import pytest

from benchmarks.suite_cells import Result, read_results
from benchmarks.suite_docs import CELLS, PLACES, drawn, four_per_class


@pytest.mark.parametrize("mark", PLACES)
def test_the_docs_show_the_stored_cells(mark: str) -> None:
    file, table = PLACES[mark]
    page = file.read_text(encoding="utf-8")
    assert drawn(page, mark, table(read_results(CELLS))) == page, "run python -m benchmarks.suite_docs"


def test_another_cell_gives_another_table() -> None:
    cells = read_results(CELLS)
    other = [Result("trash", "simmatch", "4", 9, 0.0, 0.0, 1.0), *cells]
    assert four_per_class(other) != four_per_class(cells)
