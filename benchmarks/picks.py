"""Which images to label: picks against random images and other rules, one round and three, by the whole pipeline.

    python -m benchmarks.picks --data ../shared/data --work suite            # all folders, 2C and 4C labels, 5 seeds
    python -m benchmarks.picks --data ../shared/data --half tuning --seeds 2
    python -m benchmarks.picks --data ../shared/data --json benchmarks/results/picks.json --docs docs/picking.md

A seed draws nine tenths of the training images, from which all rules pick and the run learns: so that rules without
randomness are measured on several folders too. Labels are the truth. The classifier is a whole run of `protocon train`
on the frozen encoder's features, as `auto` sets it; a class of which no image is labelled is unknown to it. Accuracy is
on the test images, which no part has seen. Each folder has a file of cells; a second call measures what is missing.
`--data` and `--work` are those of `benchmarks.suite`, whose features are used.
"""

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import torch

from benchmarks.picks_pipeline import Pipeline
from benchmarks.picks_rules import RULES, Folder, Pool
from benchmarks.suite import HALVES
from benchmarks.suite_cells import Folder as SuiteFolder

BEGIN, END = "<!-- picks begin -->", "<!-- picks end -->"
RANDOM, ONE, THREE = "random", "coverage, 1 round", "coverage, 3 rounds"


@dataclass(frozen=True)
class Cell:
    """One rule, one budget, one draw of images."""

    folder: str
    rule: str
    per_class: int
    """The budget is this many times C."""
    seed: int
    accuracy: float
    macro: float
    """Mean over classes."""
    unlabelled: float
    """Accuracy on the training images without a label."""
    found: float
    """Share of the classes of which there is a label."""
    prior: float
    """Total variation between the truth and class frequencies as the page shows them (`Picker.prior`)."""
    uniform: float
    """The same for uniform frequencies."""

    @property
    def key(self) -> tuple[str, str, int, int]:
        """What it is."""
        return self.folder, self.rule, self.per_class, self.seed


class Judge(Protocol):
    """What learns from the labels: the whole pipeline."""

    def predict(self, kept: np.ndarray, labels: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Classes of the test images and of the kept ones."""

    def tested(self) -> tuple[np.ndarray, np.ndarray]:
        """The test images, and their true classes."""


def measure(pool: Pool, pipeline: Judge, rule: str, per_class: int) -> Cell:
    """Pick, label, train, test."""
    chosen = RULES[rule](pool, per_class * pool.classes)
    labels = pool.labels(chosen)
    guess, own = pipeline.predict(pool.kept, labels, pool.seed)
    truth = pipeline.tested()[1]
    right = guess == truth
    frequencies = np.bincount(pool.truth, minlength=pool.classes) / len(pool.truth)
    quick = pool.model.predict(labels, classes=pool.classes).probs
    estimated = pool.picker.prior(labels, classes=pool.classes, probs=quick)
    return Cell(
        folder=pool.folder.name,
        rule=rule,
        per_class=per_class,
        seed=pool.seed,
        accuracy=round(float(right.mean()), 4),
        macro=round(float(np.mean([right[truth == c].mean() for c in np.unique(truth)])), 4),
        unlabelled=round(float((own == pool.truth)[labels < 0].mean()), 4),
        found=round(len(np.unique(pool.truth[chosen])) / pool.classes, 4),
        prior=round(float(np.abs(estimated - frequencies).sum() / 2), 4),
        uniform=round(float(np.abs(1 / pool.classes - frequencies).sum() / 2), 4),
    )


class Cells:
    """All cells of some folders: those that files of results have are not measured again.

    Args:
        data: holds the suite's archives.
        work: takes images, features and results.
        name: of the comparison.
    """

    def __init__(self, data: Path, work: Path, name: str) -> None:
        torch.set_num_threads(1)
        self.data, self.work, self.results = data, work, work / name
        self.results.mkdir(parents=True, exist_ok=True)
        self._found: dict[str, dict[tuple[str, str, int, int], Cell]] = {}
        self._pipelines: dict[str, Pipeline] = {}

    def get(self, folder: str, rules: Sequence[str], budgets: Sequence[int], seed: int) -> list[Cell]:
        """Cells of a folder and a seed.

        Args:
            folder: its name.
            rules: by name.
            budgets: labels, in multiples of the number of classes.
            seed: draws the images.
        """
        results = self.results / f"{folder}.jsonl"
        found = self._found.setdefault(folder, {cell.key: cell for cell in read_cells(results)})
        wanted = [(folder, rule, budget, seed) for budget in budgets for rule in rules]
        pool: Pool | None = None
        for key in wanted:
            if key in found:
                continue
            pipeline = self._pipeline(folder)
            pool = pool or Pool(Folder(folder, *pipeline.seen()), seed)
            cell = found[key] = measure(pool, pipeline, key[1], key[2])
            with results.open("a", encoding="utf-8") as file:
                file.write("\n" + json.dumps(asdict(cell)))
            print(f"{folder} {cell.rule} {cell.per_class}C seed {seed}: {100 * cell.accuracy:.1f} %", flush=True)
        return [found[key] for key in wanted]

    def _pipeline(self, folder: str) -> Pipeline:
        if folder not in self._pipelines:
            self._pipelines[folder] = Pipeline(SuiteFolder(folder, data=self.data, work=self.work))
        return self._pipelines[folder]


def read_cells(file: Path) -> list[Cell]:
    """The cells that a file has; a line that was cut short is left out."""
    found = []
    for line in file.read_text(encoding="utf-8").splitlines() if file.is_file() else ():
        try:
            found.append(Cell(**json.loads(line)))
        except (json.JSONDecodeError, TypeError):
            continue
    return found


def mean(cells: Sequence[Cell], rule: str, per_class: int, key: str, folder: str) -> float:
    """Over the seeds of one folder."""
    values = [getattr(c, key) for c in cells if (c.rule, c.per_class, c.folder) == (rule, per_class, folder)]
    return float(np.mean(values))


def tables(cells: Sequence[Cell]) -> str:
    """Markdown: test accuracy by folder, how far class frequencies are from the truth, and what was asked."""
    rules = list(dict.fromkeys(cell.rule for cell in cells))
    folders = list(dict.fromkeys(cell.folder for cell in cells))
    budgets = sorted({cell.per_class for cell in cells})
    lines = []
    for key, scale, digits in (("accuracy", 100, 1), ("macro", 100, 1), ("prior", 1, 2)):
        for budget in budgets:
            lines += [f"\n| {key}, {budget}C labels | " + " | ".join((*folders, "mean")) + " |"]
            lines += ["|---" * (len(folders) + 2) + "|"]
            shown = [(rule, rule, key) for rule in rules]
            if key == "prior":
                shown.insert(0, ("uniform", rules[0], "uniform"))
            for title, rule, what in shown:
                values = [scale * mean(cells, rule, budget, what, folder) for folder in folders]
                row = " | ".join(f"{v:.{digits}f}" for v in (*values, np.mean(values)))
                lines.append(f"| {title} | {row} |")
    draws = len({cell.seed for cell in cells})
    measured = f"Measured so far: {draws} draw{'s' if draws > 1 else ''} of {len(folders)} folders."
    return "\n".join([measured, *lines, "", *differences(cells, folders, budgets)])


def differences(cells: Sequence[Cell], folders: Sequence[str], budgets: Sequence[int]) -> list[str]:
    """One rule against another over the same draws, in points, with 95 % intervals over draws."""
    pairs = [(THREE, b, RANDOM, b) for b in budgets] + [(ONE, b, RANDOM, b) for b in budgets]
    pairs += [(THREE, b, ONE, b) for b in budgets] + [(THREE, 2, RANDOM, 4), (ONE, 2, RANDOM, 4)]
    table = {cell.key: cell for cell in cells}
    lines = []
    for rule, budget, other, than in pairs:
        gains: dict[str, list[float]] = {}
        macros = []
        for folder, name, size, seed in table:
            if (name, size) == (rule, budget) and (folder, other, than, seed) in table:
                one, two = table[folder, name, size, seed], table[folder, other, than, seed]
                gains.setdefault(folder, []).append(100 * (one.accuracy - two.accuracy))
                macros.append(100 * (one.macro - two.macro))
        if not gains:
            continue
        draws = np.array([np.mean(values) for values in zip(*gains.values(), strict=False)])
        half = f"± {1.96 * draws.std(ddof=1) / np.sqrt(len(draws)):.1f}" if len(draws) > 1 else "(one draw)"
        by_folder = ", ".join(f"{folder} {np.mean(gains[folder]):+.1f}" for folder in folders if folder in gains)
        lines.append(
            f"- {rule}, {budget}C, against {other}, {than}C: {np.mean([np.mean(g) for g in gains.values()]):+.1f} "
            f"{half} ({np.mean(macros):+.1f} in the mean over classes); {by_folder}"
        )
    return lines


def with_tables(page: str, shown: str) -> str:
    """A page with the tables between its marks."""
    before, rest = page.split(BEGIN)
    return f"{before}{BEGIN}\n{shown.strip()}\n{END}{rest.split(END)[1]}"


def main() -> None:
    """Measure what is missing, print tables, keep the cells."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with suite/*.zip and cifar10.zip")
    parser.add_argument("--work", type=Path, default=Path("suite"), help="folder for images, cache and results")
    parser.add_argument("--name", default="picks", help="of this comparison in the work folder")
    parser.add_argument("--half", choices=HALVES, default="all")
    parser.add_argument("--folders", help="a,b,c instead of a half")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--per-class", default="2,4")
    parser.add_argument("--rules", default=";".join(RULES), help="separated by semicolons")
    parser.add_argument("--json", type=Path, help="write all cells here")
    parser.add_argument("--docs", type=Path, help="put the tables between this page's marks")
    asked = parser.parse_args()
    folders = asked.folders.split(",") if asked.folders else HALVES[asked.half]
    budgets, rules = [int(text) for text in asked.per_class.split(",")], asked.rules.split(";")
    measured = Cells(asked.data.resolve(), asked.work.resolve(), asked.name)
    # Draw by draw, so that what is there after an interruption is all folders of the first draws.
    cells = [c for seed in range(asked.seeds) for folder in folders for c in measured.get(folder, rules, budgets, seed)]
    shown = tables(cells)
    print(shown)
    if asked.docs is not None:
        asked.docs.write_text(with_tables(asked.docs.read_text(encoding="utf-8"), shown), encoding="utf-8")
    if asked.json is not None:
        lines = ",\n".join(json.dumps(asdict(cell)) for cell in cells)
        asked.json.write_text('{"cells": [\n' + lines + "\n]}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
