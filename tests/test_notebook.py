"""The notebook in examples/ runs from top to bottom in a real kernel, and its bars are lines that are drawn over."""

from pathlib import Path
from typing import Any

import pytest

from tests.engine.photos import make_package

ROOT = Path(__file__).parents[1]
NOTEBOOK = ROOT / "examples" / "first_hour.ipynb"

_SMALL = """
import sys
from pathlib import Path
sys.path[:0] = [{source!r}, {root!r}]
import protocon
from tests.engine.photos import SETTINGS, install
install(Path({packages!r}))
usual = protocon.build_config
protocon.build_config = lambda **given: usual(**given, overrides=[*SETTINGS, "report=false"])
"""
"""An encoder that takes no time in the place of the installed one, short runs, and no report, which takes seconds."""


def text_of(outputs: list[Any]) -> str:
    return "".join(out.get("text", "") or "".join(out.get("data", {}).get("text/plain", "")) for out in outputs)


@pytest.mark.filterwarnings("ignore")  # of the kernel's own packages
def test_the_notebook_runs_from_top_to_bottom(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reason = "nbclient and ipykernel are not installed: pip install 'protocon[test]'"
    nbclient = pytest.importorskip("nbclient", reason=reason)
    nbformat = pytest.importorskip("nbformat", reason=reason)
    pytest.importorskip("ipykernel", reason=reason)
    make_package(tmp_path / "packages")
    for name, value in {"XDG_CACHE_HOME": tmp_path / "cache", "OMP_NUM_THREADS": 1, "IPYTHONDIR": tmp_path}.items():
        monkeypatch.setenv(name, str(value))
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells)  # it is kept without them
    places = {"source": str(ROOT / "src"), "root": str(ROOT), "packages": str(tmp_path / "packages")}
    notebook.cells.insert(0, nbformat.v4.new_code_cell(_SMALL.format(**places)))
    resources = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(notebook, timeout=300, startup_timeout=120, resources=resources).execute()
    cells = [cell.outputs for cell in notebook.cells[1:] if cell.cell_type == "code"]
    made, trained, looked, corrected, again, predicted = cells
    assert not made
    assert not corrected
    assert "to look at" in text_of(trained)
    bars = [text_of([out]) for out in trained if out.output_type == "display_data"]
    assert sum("training" in bar for bar in bars) == 1  # one line, drawn over to the end
    assert any("training" in bar and "100 %" in bar for bar in bars)
    assert ".png" in text_of(looked)
    assert "of 60 labels are right" in text_of(again)
    assert text_of(predicted).count("'") == 4
    warned = [out.text for cell in cells for out in cell if out.output_type == "stream" and "Warning" in out.text]
    assert not warned
    assert (tmp_path / "runs" / "second" / "model.safetensors").is_file()
