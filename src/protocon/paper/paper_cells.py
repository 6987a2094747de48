"""Every cell of the paper's tables: its name is that of a recipe, such as `table1/cifar10-40/comatch`."""

from dataclasses import dataclass
from functools import cache
from typing import Any

from protocon.paper import paper_figures as figures
from protocon.paper.columns import COLUMNS, Column
from protocon.paper.paper_figures import Reported
from protocon.paper.paper_rows import ABLATION_ROWS, IMAGENET_ROWS, ROWS, Row


@dataclass(frozen=True)
class PaperCell:
    """A number that the paper reports, with the settings that give it."""

    table: str
    column: str
    row: str
    reported: Reported
    """Accuracy and ± in percent; None where the paper has a dash."""

    @property
    def name(self) -> str:
        """Of the cell and its recipe."""
        return f"{self.table}/{self.column}/{self.row}"

    @property
    def setting(self) -> Column:
        """Data and labels."""
        return COLUMNS[self.column]

    @property
    def method(self) -> Row:
        """The row's method."""
        return _TABLES[self.table].rows[self.row]

    @property
    def parent(self) -> str:
        """The recipe that it extends."""
        return self.method.recipe or self.setting.parent

    def recipe(self) -> dict[str, Any]:
        """Its recipe: what it extends, and only what differs from that."""
        column, row = self.setting, self.method
        alone = row.method == "supervised" or row.recipe is not None
        own = column.ours if row.method == "protocon" else {} if alone else column.theirs
        here = row.by_column.get(self.column, {})
        recipe: dict[str, Any] = {"extends": self.parent, "method_name": row.method}
        for section in ("data", "method", "optim"):
            changes = {**column.settings.get(section, {}), **(own if section == "method" else {})}
            changes |= {**row.settings.get(section, {}), **here.get(section, {})}
            if changes:
                recipe[section] = changes
        return recipe


@dataclass(frozen=True)
class PaperTable:
    """A table of the paper."""

    title: str
    columns: tuple[str, ...]
    rows: dict[str, Row]
    reported: dict[str, tuple[Reported, ...]]


_TABLES = {
    "table1": PaperTable("Table 1: CIFAR and Mini-ImageNet, 5 splits", figures.TABLE_1_COLUMNS, ROWS, figures.TABLE_1),
    "table2": PaperTable("Table 2: DomainNet, 1 split", figures.TABLE_2_COLUMNS, ROWS, figures.TABLE_2),
    "table3": PaperTable("Table 3: ImageNet, 1 split", figures.TABLE_3_COLUMNS, IMAGENET_ROWS, figures.TABLE_3),
    "moderate": PaperTable("Moderate-label regime, 3 splits", figures.MODERATE_COLUMNS, ROWS, figures.MODERATE),
    "ablations": PaperTable(
        "Ablations: CIFAR-10 with 80 labels, 5 runs", figures.ABLATION_COLUMNS, ABLATION_ROWS, figures.ABLATIONS
    ),
}
TABLES: dict[str, PaperTable] = _TABLES
"""The tables by the name that `reproduce` takes."""


@cache
def paper_cells() -> dict[str, PaperCell]:
    """Every cell by name, table by table."""
    found = {}
    for table, content in _TABLES.items():
        for row, reported in content.reported.items():
            for column, figure in zip(content.columns, reported, strict=True):
                cell = PaperCell(table, column, row, figure)
                found[cell.name] = cell
    return found
