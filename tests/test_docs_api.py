"""docs/api.md: every public name is in it, every name in it exists, signatures are as printed, the example runs."""

import inspect
import re
from typing import Any

import pytest

import protocon
from protocon.runs.trained import TrainedRun
from tests.test_docs_examples import DOCS, blocks

PAGE = (DOCS / "api.md").read_text(encoding="utf-8")
HEADINGS = re.findall(r"^### `(\w+)`$", PAGE, flags=re.MULTILINE)
FITTED = {"classes_", "transduction_", "label_distributions_", "n_iter_", "n_features_in_", "run_"}


def signatures() -> dict[str, list[str]]:
    """Parameters of each printed signature, with * where the keyword-only ones begin."""
    found = {}
    for text in blocks("api.md", "python"):
        match = re.fullmatch(r"(\w+)\((.*)\)\n", text)
        if match:
            found[match[1]] = match[2].split(", ")
    return found


def actual(name: str) -> list[str]:
    parameters = inspect.signature(getattr(protocon, name)).parameters.values()
    names: list[str] = []
    for parameter in parameters:
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY and "*" not in names:
            names.append("*")
        names.append(parameter.name)
    return names


def test_headings_are_the_public_names() -> None:
    assert sorted(HEADINGS) == sorted(protocon.__all__)


def test_everything_that_can_be_called_has_a_signature() -> None:
    assert set(signatures()) == {name for name in protocon.__all__ if callable(getattr(protocon, name))}


@pytest.mark.parametrize("name", sorted(signatures()))
def test_signatures_are_as_printed(name: str) -> None:
    assert signatures()[name] == actual(name)


def test_attributes_are_as_printed() -> None:
    rows = re.findall(r"^\| `(\w+)\.(\w+)` \|", PAGE, flags=re.MULTILINE)
    classes: dict[str, Any] = {"TrainedRun": TrainedRun, "ProtoConClassifier": protocon.ProtoConClassifier}
    for owner, name in rows:
        known = (
            hasattr(classes[owner], name) or name in getattr(classes[owner], "__annotations__", ()) or name in FITTED
        )
        assert known, f"{owner}.{name}"
    printed = {name for owner, name in rows if owner == "ProtoConClassifier"}
    own = {name for name in vars(protocon.ProtoConClassifier) if not name.startswith(("_", "set_", "get_"))}
    assert own <= printed
    assert printed >= FITTED


def test_the_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = (text for text in blocks("api.md", "python") if "import" in text)
    names: dict[str, Any] = {}
    exec(code, names)
    assert all(hasattr(names["classifier"], name) for name in FITTED)
    assert float(capsys.readouterr().out) > 0.9
