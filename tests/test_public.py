"""The public names are there, and each room imports only from rooms above it."""

import ast
from pathlib import Path

import protocon

PACKAGE = Path(protocon.__file__).parent
ROOMS = (
    "foundations",
    "data",
    "references",
    "augment",
    "networks",
    "core",
    "methods",
    "config",
    "auto",
    "engine",
    "results",
    "cli",
    "__main__",
)
FOUNDATIONS = ("draws", "types", "errors", "distributed")


def test_public_names_resolve() -> None:
    for name in protocon.__all__:
        assert getattr(protocon, name) is not None
    assert protocon.__version__


def room(module: str) -> str:
    """Room of `protocon.x.y`."""
    parts = module.split(".")
    first = parts[1] if len(parts) > 1 else ""
    return "foundations" if first in FOUNDATIONS else first


def imports(file: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("protocon"):
            module = str(node.module)
            found |= {f"{module}.{alias.name}" for alias in node.names} if module == "protocon" else {module}
    return found


def test_rooms_import_only_from_rooms_above() -> None:
    checked = 0
    for file in PACKAGE.rglob("*.py"):
        if file == PACKAGE / "__init__.py":
            continue
        own = room(".".join(("protocon", *file.relative_to(PACKAGE).with_suffix("").parts)))
        for module in imports(file):
            assert ROOMS.index(room(module)) <= ROOMS.index(own), f"{file.name} imports {module}"
            checked += 1
    assert checked > 100
