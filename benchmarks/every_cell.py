"""Two steps of every cell of the paper's tables, on small data of the right layout.

python -m benchmarks.every_cell

Each cell's own recipe goes through `reproduce`; what small data change in it is in tests/reproduce/small_cells.py.
Cells that results/every_cell.json lists as run are not run again, unless `--anew` is given.
"""

import argparse
import json
import math
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from protocon.claims.results import commit
from protocon.paper.paper_cells import paper_cells
from protocon.runs import layout
from tests.reproduce.small_cells import changes, small_reproduction

FILE = Path(__file__).resolve().parent / "results" / "every_cell.json"


def run_cell(name: str, folder: Path) -> dict[str, Any]:
    """Run a cell; its steps, and whether all numbers of its epochs are finite.

    Args:
        name: of the cell.
        folder: for data and runs.
    """
    out = folder / "out"
    (found,) = small_reproduction(name, folder / "data", out).run(Console(quiet=True))
    (run,) = (out / "cells").iterdir()
    result = json.loads((run / layout.RESULT).read_text(encoding="utf-8"))
    rows = [json.loads(line) for line in (run / layout.METRICS).read_text(encoding="utf-8").splitlines()]
    numbers = [value for row in rows for value in row.values() if isinstance(value, int | float)]
    shutil.rmtree(out)
    return {
        "state": found.state,
        "method": result["method"],
        "steps": result["steps"],
        "finite": all(math.isfinite(value) for value in numbers),
        "losses": sorted({key for row in rows for key in row if key.startswith("loss")}),
        "changes": changes(paper_cells()[name]),
        "commit": commit(),
    }


def main() -> None:
    """Run what is missing."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--anew", action="store_true")
    parser.add_argument("--cells", nargs="*")
    parser.add_argument("--json", type=Path, default=FILE)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    found = {} if asked.anew or not asked.json.is_file() else json.loads(asked.json.read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as folder:
        for name in asked.cells or paper_cells():
            if name not in found:
                found[name] = run_cell(name, Path(folder))
                sys.stderr.write(f"{name}: {found[name]['state']}, {found[name]['steps']} steps\n")
                ordered = {cell: found[cell] for cell in paper_cells() if cell in found}
                asked.json.write_text(json.dumps(ordered, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
