"""The version is the same wherever it is written, and the changelog has an entry for it."""

import re
import tomllib
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import yaml

from tests.test_docs_examples import ROOT


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def project() -> dict[str, Any]:
    content: dict[str, Any] = tomllib.loads(read("pyproject.toml"))["project"]
    return content


def test_the_version_is_the_same_everywhere() -> None:
    newest = re.findall(r"^## (\d+\.\d+\.\d+)", read("CHANGELOG.md"), flags=re.MULTILINE)[0]
    assert project()["version"] == newest == yaml.safe_load(read("CITATION.cff"))["version"]


def test_the_release_date_is_the_changelogs() -> None:
    (date,) = re.findall(rf"^## {project()['version']} – (\S+)$", read("CHANGELOG.md"), flags=re.MULTILINE)
    assert yaml.safe_load(read("CITATION.cff"))["date-released"] == date


def test_ci_tests_the_pythons_that_are_promised() -> None:
    matrix = yaml.safe_load(read(".github/workflows/ci.yml"))["jobs"]["tests"]["strategy"]["matrix"]
    promised = re.findall(r"Python :: (3\.\d+)", " ".join(project()["classifiers"]))
    assert matrix["python"] == promised
    assert project()["requires-python"] == f">={promised[0]}"


def plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_every_dependency_has_a_pin_which_is_what_is_tested_here() -> None:
    lines = [line for line in read("constraints.txt").splitlines() if line and not line.startswith("#")]
    pins = {plain(name): pin for name, _, pin in (line.partition("==") for line in lines)}
    assert all(pins.values())
    extras = project()["optional-dependencies"]
    wanted = [*project()["dependencies"], *(text for texts in extras.values() for text in texts)]
    names = {plain(re.split(r"[\[<>=! ]", text)[0]) for text in wanted} - {"protocon"}
    assert names <= set(pins)
    different = []
    for name in names:
        try:
            here = version(name)
        except PackageNotFoundError:
            continue  # an extra that is not installed
        if here.partition("+")[0] != pins[name].partition("+")[0]:
            different.append((name, pins[name], here))
    assert not different
