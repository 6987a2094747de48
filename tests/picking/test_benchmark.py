"""benchmarks/picks.py: every rule gives as many different images as asked for, and figures that make sense."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks.picks import BEGIN, END, Cell, measure, read_cells, tables, with_tables
from benchmarks.picks_rules import RULES, Folder, Pool
from tests.picking.blobs import blobs

COUNTS = (60, 40, 20, 10)


class QuickPipeline:
    """The quick model in the place of a whole run."""

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        self.test, self.groups = blobs(COUNTS, spread=0.5)

    def tested(self) -> tuple[np.ndarray, np.ndarray]:
        return self.test, self.groups

    def predict(self, kept: np.ndarray, labels: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
        assert len(kept) == len(labels) == len(self.pool.truth)
        assert seed == self.pool.seed
        model, classes = self.pool.model, self.pool.classes
        others = model.predict_others(np.abs(self.test), labels, classes=classes).argmax(axis=1)
        return others, model.predict(labels, classes=classes).probs.argmax(axis=1)


@pytest.fixture(scope="module")
def pool() -> Pool:
    features, groups = blobs(COUNTS, spread=0.5)
    return Pool(Folder("blobs", np.abs(features), groups), seed=1)


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_gives_different_images(pool: Pool, rule: str) -> None:
    chosen = RULES[rule](pool, 12)
    assert len(set(chosen.tolist())) == len(chosen) == 12
    assert (chosen == RULES[rule](pool, 12)).all()


def test_figures(pool: Pool) -> None:
    cells = [measure(pool, QuickPipeline(pool), rule, 2) for rule in ("random", "coverage, 3 rounds")]
    picked = cells[1]
    assert picked.found == 1
    assert picked.accuracy > 0.95
    assert picked.unlabelled > 0.95
    assert picked.prior < picked.uniform
    shown = tables(cells)
    assert f"| {100 * picked.accuracy:.1f} |" in shown
    gain = 100 * (picked.accuracy - cells[0].accuracy)
    assert f"- coverage, 3 rounds, 2C, against random, 2C: {gain:+.1f} (one draw)" in shown


def test_a_line_that_was_cut_short_is_measured_again(tmp_path: Path) -> None:
    cell = Cell("a", "random", 2, 0, 0.5, 0.5, 0.5, 1.0, 0.1, 0.2)
    text = '\n{"folder": "a", "rule": "random", "per_class": 2, "seed": 0, "accuracy": 0.5, "macro": 0.5, '
    text += '"unlabelled": 0.5, "found": 1.0, "prior": 0.1, "uniform": 0.2}\n{"folder": "a", "ru'
    (tmp_path / "a.jsonl").write_text(text)
    assert read_cells(tmp_path / "a.jsonl") == [cell]


def test_the_page_takes_the_tables_between_its_marks() -> None:
    once = with_tables(f"before\n{BEGIN}\nold\n{END}\nafter\n", "\n| new |")
    assert once == f"before\n{BEGIN}\n| new |\n{END}\nafter\n" == with_tables(once, "| new |")
