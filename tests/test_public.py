"""The public names are there, and each room imports only from rooms above it."""

import ast
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import protocon

PACKAGE = Path(protocon.__file__).parent
ROOMS = (
    "types",
    "errors",
    "base",
    "data.source_options",
    "data.purposes",
    "data.files",
    "data.imageset",
    "data.shared_bundle",
    "data.labels",
    "data.sources",
    "data.registry",
    "data.recognise",
    "data.duplicates",
    "data.loading",
    "references",
    "augment",
    "networks",
    "features",
    "core",
    "methods",
    "paper",
    "settings",
    "runs",
    "report",
    "engine.setup",
    "engine.loop",
    "engine.labelling",
    "engine.planning",
    "engine.run",
    "picking",
    "estimator",
    "export",
    "labeller",
    "compare",
    "claims",
    "reproduce",
    "commands",
    "cli",
    "__main__",
)


def test_public_names_resolve() -> None:
    for name in protocon.__all__:
        assert getattr(protocon, name) is not None
    assert protocon.__version__


def test_readme_python_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As printed, but for two epochs and on a picture of ours."""
    readme = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    code = readme.split("```python\n")[1].split("```")[0]
    assert "labels_per_class" in code
    monkeypatch.chdir(tmp_path)
    Image.fromarray(np.zeros((8, 8), dtype=np.uint8)).save("photo.png")
    short = 'build_config(overrides=["epochs=2", "image_size=8", "batch_size=64"], settings='
    names: dict[str, Any] = {}
    exec(code.replace("build_config(settings=", short), names)
    assert names["run"].predict_files(["photo.png"])[0]["label"] in "0123456789"


def room(module: str) -> str:
    """Room of `protocon.x.y`."""
    parts = module.split(".")[1:]
    two = ".".join(parts[:2])
    return two if two in ROOMS else parts[0]


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
        if file.name == "__init__.py" and own not in ROOMS:  # of a room that has sub-rooms
            assert not imports(file)
            continue
        for module in imports(file):
            assert ROOMS.index(room(module)) <= ROOMS.index(own), f"{file.name} imports {module}"
            checked += 1
    assert checked > 100


def test_no_two_files_have_the_same_name() -> None:
    """A name without its room says which file is meant."""
    names = [file.name for file in PACKAGE.rglob("*.py") if not file.name.startswith("__")]
    assert sorted({name for name in names if names.count(name) > 1}) == []


def test_architecture_page_shows_the_tree_as_it_is() -> None:
    """Every room, and every file that stands beside sub-rooms, and nothing that is not there."""
    page = (Path(__file__).parents[1] / "docs" / "architecture.md").read_text(encoding="utf-8")
    block = page.split("```text\n")[1].split("```")[0]
    shown: list[str] = []
    top = ""
    for line in block.splitlines():
        name = line[:14].strip()
        words = [name, *(word for word in line[14:].split() if word.endswith(".py"))] if name else line.split()
        for word in words:
            nested = line.startswith(" ") or (name and word != name)
            if not nested:
                top = word
            shown.append(f"{top}{word}" if nested else word)
    real = {f"{path.name}/" for path in PACKAGE.iterdir() if path.is_dir() and path.name != "__pycache__"}
    real |= {path.name for path in PACKAGE.glob("*.py") if not path.name.startswith("__")}
    for name in ("data", "engine"):
        real |= {f"{name}/{path.name}/" for path in (PACKAGE / name).iterdir() if (path / "__init__.py").is_file()}
        real |= {f"{name}/{path.name}" for path in (PACKAGE / name).glob("*.py") if path.name != "__init__.py"}
    assert sorted(shown) == sorted(real)
    order = [room(f"protocon.{entry.removesuffix('/').removesuffix('.py').replace('/', '.')}") for entry in shown]
    places = [ROOMS.index(name) for name in order if name in ROOMS]
    assert places == sorted(places), "rooms are shown in the order of the layering test"
