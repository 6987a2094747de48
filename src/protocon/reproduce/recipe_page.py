"""A recipe with everything that is known about it: settings, the paper's figure, time and memory here."""

from typing import Any

from protocon.errors import ConfigError, unknown_name
from protocon.paper.datasets import SIZES
from protocon.paper.paper_cells import TABLES, PaperCell, paper_cells
from protocon.reproduce.availability import missing_part
from protocon.reproduce.estimate import estimate
from protocon.settings.config import build_config, to_yaml
from protocon.settings.recipe import recipe_names


def describe_recipe(name: str) -> dict[str, Any]:
    """A recipe or a cell of the paper's tables, as plain data with lines for a person."""
    if name in paper_cells():
        return _cell(paper_cells()[name])
    if name not in recipe_names() and not name.endswith((".yaml", ".yml")):
        raise ConfigError(unknown_name("recipe", name, [*recipe_names(), *paper_cells()]))
    config = build_config(recipe=name)
    uses = [cell.name for cell in paper_cells().values() if cell.parent == name]
    lines = [f"cells of the paper's tables that extend it: {', '.join(uses)}"] if uses else []
    return {"name": name, "settings": config.model_dump(mode="json"), "settings_yaml": to_yaml(config), "lines": lines}


def _cell(cell: PaperCell) -> dict[str, Any]:
    reported = cell.reported
    figure = "a dash" if reported is None else f"{reported[0]} %" + ("" if reported[1] is None else f" ± {reported[1]}")
    lines = [f"{TABLES[cell.table].title}: the paper reports {figure} for {cell.method.title}"]
    if cell.method.weights is not None:
        lines.append(f"starts from {cell.method.weights} (network.weights=FILE)")
    changes = {section: content for section, content in cell.recipe().items() if section != "extends"}
    lines.append(f"differs from {cell.parent} in {changes}")
    if (lacking := missing_part(cell)) is not None:
        lines.append(lacking)
        return {"name": cell.name, "settings": None, "settings_yaml": "", "lines": lines}
    found = estimate(build_config(recipe=cell.name), SIZES[cell.setting.data], cell.setting.labels)
    config = found.resolved.config
    return {
        "name": cell.name,
        "settings": config.model_dump(mode="json"),
        "settings_yaml": to_yaml(config),
        "paper": reported,
        "steps": found.steps,
        "device": found.device,
        "seconds": found.seconds,
        "memory_bytes": found.memory,
        "lines": [*lines, *found.lines()],
    }
