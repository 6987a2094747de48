"""Draw docs/evidence.md and its figures from the results in results/.

python -m benchmarks.evidence
"""

import json
from pathlib import Path

from protocon.claims.evidence import page
from protocon.claims.figure import draw
from protocon.claims.first_steps_part import FirstSteps
from protocon.claims.ideas_table import IdeasTable
from protocon.claims.results import load
from protocon.claims.scratch_tables import DUAL, ScratchTable
from protocon.compare.stored_cells import comparison_of, read_cells

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results"
DOCS = HERE.parent / "docs"
IMAGES = "images/claims"
SEEDS = 5
LATER = {
    "compare_digits_mpl_cells.csv": "",
    "compare_digits_paws_cells.csv": " (40 epochs)",
    "compare_digits_dual_later_cells.csv": DUAL,
}
"""Cells of methods that came later, with what the names of their rows end with."""


def tables() -> list[ScratchTable]:
    """All methods from scratch: digits, and fields that were run cell by cell."""
    digits = read_cells(RESULTS / "compare_digits_cells.csv")
    for name, suffix in LATER.items():
        if (RESULTS / name).is_file():
            digits += read_cells(RESULTS / name, suffix=suffix)
    digits += read_cells(RESULTS / "compare_digits_dual_cells.csv", suffix=DUAL)
    command = "protocon compare --data digits --labels-per-class 2,4,8 --seeds 5"
    about = (
        "scikit-learn's handwritten digits, 8×8 pixels, on which our settings for small data were chosen; WRN-10-1, "
        "1,300 steps. A step of PAWS sees four crops per image and a support set: it has 40 epochs instead of 100. "
        "MPL and PAWS: the command below with `--methods mpl`, and with `--methods paws --epochs 40`; dual alignment: "
        "with `--methods protocon,fixmatch-da,simmatch,comatch alignment=dual`"
    )
    found = [ScratchTable(comparison_of(digits, "digits", seeds=SEEDS), about, command)]
    file = RESULTS / "compare_fashion_mnist_cells.csv"
    if file.is_file():
        told = json.loads(file.with_suffix(".json").read_text(encoding="utf-8"))
        about = f"{told['about']}, {told['epochs']} epochs; nothing was chosen on it"
        cells = comparison_of(read_cells(file), told["data"], seeds=SEEDS)
        found.append(ScratchTable(cells, about, "python -m benchmarks.from_scratch --data fashion-mnist"))
    return found


def ideas() -> IdeasTable | None:
    """Changes of ProtoCon, on validation images."""
    file = RESULTS / "ideas_cells.csv"
    if not file.is_file():
        return None
    told = json.loads(file.with_suffix(".json").read_text(encoding="utf-8"))
    about = f"{told['about'].replace('test images', 'validation images')}, {told['epochs']} epochs"
    command = (
        "python -m benchmarks.from_scratch --validation --labels 4,2 --seeds 0,1,2 --methods VARIANTS "
        "--cells benchmarks/results/ideas_cells.csv"
    )
    return IdeasTable(comparison_of(read_cells(file), told["data"]), about, command)


def steps() -> FirstSteps | None:
    """The first steps of the recipe of CIFAR-10 with 40 labels."""
    folder = RESULTS / "first_steps"
    if not (folder / "digest.json").is_file():
        return None
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    digest = json.loads((folder / "digest.json").read_text(encoding="utf-8"))
    return FirstSteps(digest, rows, "../benchmarks/results/first_steps")


def drawn() -> str:
    """The page, from what is stored."""
    return page(load(RESULTS / "claims"), images=IMAGES, tables=tables(), ideas=ideas(), steps=steps())


def main() -> None:
    """Write the page and its figures."""
    for result in load(RESULTS / "claims"):
        draw(result, DOCS / IMAGES / f"{result['claim']}-{result['data']}.svg")
    (DOCS / "evidence.md").write_text(drawn(), encoding="utf-8")


if __name__ == "__main__":
    main()
