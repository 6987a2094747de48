"""The examples in docstrings run and print what they say; every public name has one."""

import ast
import doctest
from collections.abc import Iterator
from pathlib import Path

import pytest

import protocon

PACKAGE = Path(protocon.__file__).parent
TRAINS = "engine/run.py"
"""Its example trains the run that other examples use."""


def texts(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Docstrings with examples, by the name of what they document; those under an attribute included."""
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if not isinstance(body, list):
            continue
        for before, child in zip([node, *body], body, strict=False):
            if isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant):
                text = child.value.value
                if isinstance(text, str) and ">>>" in text:
                    target = before.target if isinstance(before, ast.AnnAssign) else before
                    yield str(getattr(target, "id", getattr(target, "name", "module"))), text


def examples() -> dict[str, list[doctest.DocTest]]:
    """Examples of each file of the package that has some."""
    found: dict[str, list[doctest.DocTest]] = {}
    for file in sorted(PACKAGE.rglob("*.py")):
        source = file.read_text(encoding="utf-8")
        if ">>>" in source:
            name = file.relative_to(PACKAGE).as_posix()
            parser = doctest.DocTestParser()
            found[name] = [parser.get_doctest(text, {}, of, name, None) for of, text in texts(ast.parse(source))]
    return found


EXAMPLES = examples()


def check(test: doctest.DocTest) -> None:
    said: list[str] = []
    doctest.DocTestRunner(verbose=False).run(test, out=said.append)
    assert not said, "".join(said)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the example that trains has been run."""
    folder = tmp_path_factory.mktemp("examples")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for test in EXAMPLES[TRAINS]:
            check(test)
    return folder


@pytest.mark.parametrize("name", [name for name in EXAMPLES if name != TRAINS])
def test_examples_print_what_they_say(name: str, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    monkeypatch.setenv("XDG_CACHE_HOME", str(place / "cache"))
    for test in EXAMPLES[name]:
        assert test.examples
        check(test)


def test_the_example_that_trains_leaves_a_run(place: Path) -> None:
    assert (place / "runs" / "digits" / "model.safetensors").is_file()


def test_every_public_name_has_an_example() -> None:
    named = {test.name for tests in EXAMPLES.values() for test in tests}
    assert set(protocon.__all__) <= named


def test_a_wrong_example_is_noticed() -> None:
    wrong = doctest.DocTestParser().get_doctest(">>> 1 + 1\n3\n", {}, "wrong", "wrong", None)
    with pytest.raises(AssertionError, match="Expected"):
        check(wrong)
