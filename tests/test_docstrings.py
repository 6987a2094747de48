"""Parameters are documented: a public function with three or more has an `Args:` entry for each of them."""

import ast
from collections.abc import Iterator
from pathlib import Path

import protocon

PACKAGE = Path(protocon.__file__).parent
ROOMS = ("augment", "base", "core", "estimator", "export", "features", "references.py")
"""Rooms that keep to it; a room joins this list when it does."""


def functions(body: list[ast.stmt], owner: ast.ClassDef | None = None) -> Iterator[tuple[ast.FunctionDef, str]]:
    """Public functions and methods with their docstrings; that of a class is its `__init__`'s too."""
    for node in body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield from functions(node.body, node)
        if not isinstance(node, ast.FunctionDef):
            continue
        text = ast.get_docstring(node) or ""
        if node.name == "__init__" and owner is not None:
            yield node, ast.get_docstring(owner) or ""
        elif not node.name.startswith("_"):
            yield node, text


def is_kernel(function: ast.FunctionDef) -> bool:
    """Whether numba compiles it: then the function that calls it documents what goes in."""
    return any(isinstance(mark, ast.Name) and mark.id == "kernel" for mark in function.decorator_list)


def undocumented(source: str) -> Iterator[str]:
    for function, text in functions(ast.parse(source).body):
        given = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
        names = [argument.arg for argument in given if argument.arg not in ("self", "cls")]
        described = text.partition("Args:")[2]
        if len(names) >= 3 and not is_kernel(function):
            yield from (f"{function.name}: {name}" for name in names if f"{name}: " not in described)


def test_parameters_are_documented() -> None:
    files = [file for room in ROOMS for file in ([PACKAGE / room] if "." in room else (PACKAGE / room).rglob("*.py"))]
    assert len(files) > 60
    assert [f"{file.name} {found}" for file in files for found in undocumented(file.read_text(encoding="utf-8"))] == []


def test_a_missing_parameter_is_noticed() -> None:
    source = 'def f(a, b, c):\n    """F.\n\n    Args:\n        a: one.\n        c: three.\n    """\n'
    assert list(undocumented(source)) == ["f: b"]
