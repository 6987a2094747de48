"""Parameters are documented: a public function with three or more has an `Args:` entry for each of them."""

import ast
from collections.abc import Iterator
from pathlib import Path

import protocon

PACKAGE = Path(protocon.__file__).parent
VERBS = ("step: ", "updates: ", "learning_rate: ", "weight_decay: ")
"""Of the contract of methods."""


def functions(body: list[ast.stmt], owner: ast.ClassDef | None = None) -> Iterator[tuple[ast.FunctionDef, str]]:
    """Public functions and methods with their docstrings; a class's own may describe its `__init__`."""
    for node in body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield from functions(node.body, node)
        if not isinstance(node, ast.FunctionDef):
            continue
        text = ast.get_docstring(node) or ""
        if node.name == "__init__" and owner is not None:
            yield node, f"{ast.get_docstring(owner) or ''}\n{text}"
        elif not node.name.startswith("_"):
            yield node, text


def is_kernel(function: ast.FunctionDef) -> bool:
    """Whether numba compiles it: then the function that calls it documents what goes in."""
    return any(isinstance(mark, ast.Name) and mark.id == "kernel" for mark in function.decorator_list)


def has_help(argument: ast.arg, helped: frozenset[str]) -> bool:
    """Whether `--help` describes it: an option of the command line, or one of the options that commands share."""
    text = "" if argument.annotation is None else ast.unparse(argument.annotation)
    return "help=" in text or text in helped


def undocumented(source: str, *, helped: frozenset[str] = frozenset()) -> Iterator[str]:
    """Parameters without a word, of functions with three or more.

    Args:
        source: of a module.
        helped: names of types whose parameters `--help` describes.
    """
    for function, text in functions(ast.parse(source).body):
        given = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
        arguments = [argument for argument in given if argument.arg not in ("self", "cls")]
        described = text.partition("Args:")[2]
        if len(arguments) >= 3 and not is_kernel(function):
            left = (argument.arg for argument in arguments if not has_help(argument, helped))
            yield from (f"{function.name}: {name}" for name in left if f"{name}: " not in described)


def shared_options() -> frozenset[str]:
    """Types of the parameters that commands share: those with a help text, and what is chosen by the table."""
    files = [PACKAGE / "commands" / name for name in ("options.py", "run_options.py")]
    body = [node for file in files for node in ast.parse(file.read_text(encoding="utf-8")).body]
    found = [node for node in body if isinstance(node, ast.Assign) and "help=" in ast.unparse(node)]
    names = {target.id for node in found for target in node.targets if isinstance(target, ast.Name)}
    assert names >= {"AsJson", "Debug"}
    return frozenset({*names, "ChosenData"})


def test_parameters_are_documented() -> None:
    helped = shared_options()
    found = [
        f"{file.relative_to(PACKAGE)} {line}"
        for file in sorted(PACKAGE.rglob("*.py"))
        for line in undocumented(file.read_text(encoding="utf-8"), helped=helped)
        # What a method's verbs take is documented once, where the contract is.
        if not (file.parent.name == "methods" and file.name != "base.py" and line.startswith(VERBS))
    ]
    assert found == []


def test_a_missing_parameter_is_noticed() -> None:
    source = 'def f(a, b, c):\n    """F.\n\n    Args:\n        a: one.\n        c: three.\n    """\n'
    assert list(undocumented(source)) == ["f: b"]
