"""What the shell completes: names of methods, data sets and recipes, found without importing torch."""


def methods(incomplete: str) -> list[str]:
    """Methods that start so."""
    from protocon.methods import METHOD_NAMES

    return _starting(METHOD_NAMES, incomplete)


def compared(incomplete: str) -> list[str]:
    """The same for a list `a,b,c` of methods and references: completes its last name."""
    from protocon.methods import METHOD_NAMES
    from protocon.references import REFERENCES

    before, comma, last = incomplete.rpartition(",")
    taken = before.split(",")
    names = [name for name in (*METHOD_NAMES, *REFERENCES) if name not in taken]
    return [f"{before}{comma}{name}" for name in _starting(names, last)]


def data_sets(incomplete: str) -> list[str]:
    """Data sets that start so."""
    from protocon.data.registry import DATASET_NAMES

    return _starting((*DATASET_NAMES, "hf:"), incomplete)


def recipes(incomplete: str) -> list[tuple[str, str]]:
    """Recipes that start so, with what they are."""
    from protocon.settings.recipe import recipe_names, recipe_title

    return [(name, recipe_title(name)) for name in _starting(recipe_names(), incomplete)]


def precisions(incomplete: str) -> list[str]:
    """Number formats of Fabric."""
    return _starting(("32-true", "bf16-mixed", "16-mixed", "64-true"), incomplete)


def _starting(names: "tuple[str, ...] | list[str]", start: str) -> list[str]:
    return [name for name in names if name.startswith(start)]
