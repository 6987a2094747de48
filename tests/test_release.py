"""The version is the same wherever it is written, and the changelog has an entry for it."""

import re
import tomllib
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
