"""Whether a cell of the paper's tables can be run by this version."""

from protocon.methods import METHOD_NAMES
from protocon.paper.paper_cells import PaperCell
from protocon.settings.recipe import recipe_names


def missing_part(cell: PaperCell) -> str | None:
    """What this version lacks for a cell; None if nothing."""
    if cell.method.method not in METHOD_NAMES:
        return f"not available: there is no method {cell.method.method} in this version"
    if cell.parent not in recipe_names():
        return f"not available: there is no recipe {cell.parent} in this version"
    return None
